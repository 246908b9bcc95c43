#include <cuda_runtime.h>

#include <cstddef>

#include "worker/trainer/kernels/attention/attention.h"
#include "worker/trainer/kernels/attention/attention_launch.cuh"

namespace pelab::trainer {
namespace {

constexpr std::size_t kSharedWithoutAsking = 48 * 1024;

// Enqueues a kernel, unless an earlier one failed, and stores the error.
class Enqueue {
 public:
  Enqueue(CudaStream stream, cudaError_t* error) : stream_(stream), error_(error) {}

  template <class... Parameters, class... Arguments>
  void operator()(dim3 grid, dim3 block, std::size_t shared, void (*kernel)(Parameters...),
                  const Arguments&... arguments) const {
    if (*error_ != cudaSuccess) return;
    if (shared > kSharedWithoutAsking) {
      *error_ = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared));
      if (*error_ != cudaSuccess) return;
    }
    kernel<<<grid, block, shared, stream_>>>(arguments...);
    *error_ = cudaGetLastError();
  }

 private:
  CudaStream stream_;
  cudaError_t* error_;
};

// The most shared memory per block that the current device allows on request.
cudaError_t MostShared(std::size_t* bytes) {
  int device = 0, most = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  *bytes = static_cast<std::size_t>(most);
  return error;
}

KernelError TextOf(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace

template <class Element>
KernelError AttentionForwardOnCuda(const FusedAttention<Element>& problem, CudaStream stream) {
  if (!AttentionFits(problem)) return cudaGetErrorString(cudaErrorInvalidValue);
  std::size_t most_shared = 0;
  cudaError_t error = MostShared(&most_shared);
  if (error != cudaSuccess) return TextOf(error);
  LaunchAttentionForward(problem, most_shared, Enqueue(stream, &error));
  return TextOf(error);
}

template <class Element>
KernelError AttentionBackwardOnCuda(const FusedAttention<Element>& problem,
                                    const FusedAttentionGradients<Element>& gradients,
                                    CudaStream stream) {
  if (!AttentionFits(problem)) return cudaGetErrorString(cudaErrorInvalidValue);
  std::size_t most_shared = 0;
  cudaError_t error = MostShared(&most_shared);
  if (error != cudaSuccess) return TextOf(error);
  LaunchAttentionBackward(problem, gradients, most_shared, Enqueue(stream, &error));
  return TextOf(error);
}

KernelError SumAttentionPartialsOnCuda(const float* partial, std::int64_t members,
                                       std::int64_t rows, std::int64_t columns, float* sums,
                                       CudaStream stream) {
  cudaError_t error = cudaSuccess;
  LaunchSumAttentionPartials(partial, members, rows, columns, sums, Enqueue(stream, &error));
  return TextOf(error);
}

template KernelError AttentionForwardOnCuda(const FusedAttention<float>&, CudaStream);
template KernelError AttentionForwardOnCuda(const FusedAttention<Bf16>&, CudaStream);
template KernelError AttentionBackwardOnCuda(const FusedAttention<float>&,
                                             const FusedAttentionGradients<float>&, CudaStream);
template KernelError AttentionBackwardOnCuda(const FusedAttention<Bf16>&,
                                             const FusedAttentionGradients<Bf16>&, CudaStream);

}  // namespace pelab::trainer
