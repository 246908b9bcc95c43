// Runs the training steps on CUDA. Each step is a sequence of calls. After the first steps, in
// which libraries allocate their workspaces, the calls are captured as a graph and each step is one
// launch of it. Both ways give the same bits.
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
  // The work of a step with the examples at `indices` (members, examples of each), after the step
  // has begun. Body only queues work. Everything that differs between steps must be read from
  // `indices` and through `at`.
  using Body = std::function<void(const at::Tensor& indices, const Sections& sections,
                                  const DeviceStep& at)>;

  // `graphs` false: every step runs as separate calls. A step with another number of examples per
  // member than `batch_size` always runs so.
  DeviceSteps(DeviceStep at, std::int64_t members, std::int64_t batch_size, bool graphs, Body body);

  // Runs step number `step`. All steps with the same number of examples must have the same
  // sections. Does not synchronize except in the first steps.
  void Run(const at::Tensor& indices, const Sections& sections, std::int64_t step);

 private:
  void Call(const at::Tensor& indices, const Sections& sections);
  void RunByGraph(const Sections& sections);

  DeviceStep at_;
  Body body_;
  std::int64_t next_ = 0;             // the step that the device begins next
  std::unique_ptr<StepGraph> graph_;  // null: graphs are off, or the capture failed
  at::Tensor graph_indices_;          // (members, batch_size)
  int before_capture_ = 3;
  bool captured_ = false;
};

}  // namespace pelab::trainer
