// The steps of a training on CUDA: each as the same calls, or, once libraries have made their workspaces in the first ones,
// as one launch of a graph of them. Both give the same bits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "worker/trainer/train/device_step.h"
#include "worker/trainer/train/sections.h"
#include "worker/trainer/train/step_graph.h"

namespace pelab::trainer {

class DeviceSteps {
 public:
  // What a step does with the examples at `indices` (members, examples of each) after it has begun: queues work that finds all that
  // differs between steps in `indices` and through `at`.
  using Body = std::function<void(const at::Tensor& indices, const Sections& sections,
                                  const DeviceStep& at)>;

  // `graphs` false: every step by its calls. Steps of other than `batch_size` examples a member always are.
  DeviceSteps(DeviceStep at, std::int64_t members, std::int64_t batch_size, bool graphs, Body body);

  // Step number `step`. Steps of as many examples have the same sections, always. Does not synchronise but in the first steps.
  void Run(const at::Tensor& indices, const Sections& sections, std::int64_t step);

 private:
  void Call(const at::Tensor& indices, const Sections& sections);
  void RunByGraph(const Sections& sections);

  DeviceStep at_;
  Body body_;
  std::int64_t next_ = 0;             // that the device begins next
  std::unique_ptr<StepGraph> graph_;  // null: none, or none any more
  at::Tensor graph_indices_;          // (members, batch_size)
  int before_capture_ = 3;
  bool captured_ = false;
};

}  // namespace pelab::trainer
