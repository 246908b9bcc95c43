#include "worker/trainer/train/device_steps.h"

#include <ATen/ATen.h>

#include <utility>

namespace pelab::trainer {

DeviceSteps::DeviceSteps(DeviceStep at, std::int64_t members, std::int64_t batch_size, bool graphs,
                         Body body)
    : at_(std::move(at)), body_(std::move(body)) {
  if (!graphs) return;
  graph_ = std::make_unique<StepGraph>();
  graph_indices_ =
      at::zeros({members, batch_size}, at::TensorOptions().dtype(at::kLong).device(at_.device()));
}

void DeviceSteps::Run(const at::Tensor& indices, const Sections& sections, std::int64_t step) {
  if (step != next_) at_.StandBefore(step);
  next_ = step + 1;
  if (graph_ == nullptr || indices.size(1) != graph_indices_.size(1)) {
    return Call(indices, sections);
  }
  graph_indices_.copy_(indices);
  RunByGraph(sections);
}

void DeviceSteps::Call(const at::Tensor& indices, const Sections& sections) {
  at_.Begin();
  body_(indices, sections, at_);
}

void DeviceSteps::RunByGraph(const Sections& sections) {
  const auto call = [&] { Call(graph_indices_, sections); };
  if (before_capture_ > 0) {
    --before_capture_;
    return graph_->RunPlainly(call);
  }
  if (!captured_ && !graph_->Capture(call)) {
    graph_.reset();
    return call();
  }
  captured_ = true;
  graph_->Launch();
}

}  // namespace pelab::trainer
