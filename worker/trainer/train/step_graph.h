// A training step on CUDA as a graph: captured once, launched for every further step. Launching a step's several hundred
// kernels one by one takes longer than they run where a batch is small.
//
// What it captures reads everything that changes from memory that stays: the device's own count of steps (DeviceStep), and
// tensors that the caller fills before each launch. Captured and launched steps give the same bits as plain ones.
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

  // Runs `body` on the graph's own stream, as it has to be before a capture: libraries make their workspaces then.
  void RunPlainly(const std::function<void()>& body);
  // Records what `body` queues, without running it. False, with the reason on stderr, where CUDA refuses; then the graph
  // stays empty for good.
  bool Capture(const std::function<void()>& body);
  // Queues the captured work once.
  void Launch();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pelab::trainer
