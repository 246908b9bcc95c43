// A training step on CUDA as a graph: captured once, launched for every later step. With small
// batches, launching a step's several hundred kernels one by one takes longer than running them.
//
// Captured work must read everything that changes from memory that stays in place: the device's own
// step count (DeviceStep) and tensors that the caller fills before each launch. Graph launches give
// the same bits as plain calls.
//
// In a build without CUDA the constructor throws std::logic_error.
#pragma once

#include <functional>
#include <memory>

namespace pelab::trainer {

class StepGraph {
 public:
  StepGraph();
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  // Runs `body` on the graph's own stream. This must happen before a capture, because libraries
  // allocate their workspaces then.
  void RunPlainly(const std::function<void()>& body);
  // Records the work that `body` queues, without running it. If CUDA refuses, prints the reason to
  // stderr and returns false; do not call Launch then.
  bool Capture(const std::function<void()>& body);
  // Queues the captured work once.
  void Launch();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pelab::trainer
