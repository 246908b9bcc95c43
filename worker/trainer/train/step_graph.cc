#include "worker/trainer/train/step_graph.h"

#include <stdexcept>

#ifdef PELAB_CUDA_KERNELS
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <iostream>
#endif

namespace pelab::trainer {

#ifdef PELAB_CUDA_KERNELS

struct StepGraph::State {
  c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  at::cuda::CUDAGraph graph;
};

StepGraph::StepGraph() : state_(std::make_unique<State>()) {}

void StepGraph::RunPlainly(const std::function<void()>& body) {
  // Work that was queued before on the current stream finishes first; later work waits for `body`.
  at::cuda::getCurrentCUDAStream().synchronize();
  {
    const c10::cuda::CUDAStreamGuard guard(state_->stream);
    body();
  }
  state_->stream.synchronize();
}

bool StepGraph::Capture(const std::function<void()>& body) {
  at::cuda::getCurrentCUDAStream().synchronize();
  const c10::cuda::CUDAStreamGuard guard(state_->stream);
  try {
    state_->graph.capture_begin();
    body();
    state_->graph.capture_end();
    return true;
  } catch (const std::exception& error) {
    try {
      state_->graph.capture_end();  // the stream must not stay in capture
    } catch (const std::exception&) {
    }
    std::cerr << "pelab-trainer: steps run without a graph: " << error.what() << "\n";
    return false;
  }
}

void StepGraph::Launch() { state_->graph.replay(); }

#else

struct StepGraph::State {};

StepGraph::StepGraph() { throw std::logic_error("this build has no CUDA"); }
void StepGraph::RunPlainly(const std::function<void()>& body) { body(); }
bool StepGraph::Capture(const std::function<void()>&) { return false; }
void StepGraph::Launch() {}

#endif

StepGraph::~StepGraph() = default;

}  // namespace pelab::trainer
