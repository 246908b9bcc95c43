#include "worker/trainer/kernels/bias_activation_cuda.h"
#include "worker/trainer/kernels/bias_activation_kernels.cuh"
#include "worker/trainer/kernels/block_sums_kernels.cuh"
#include "worker/trainer/kernels/launch.cuh"

namespace pelab::trainer {
namespace {

template <int kVector>
dim3 GridOf(std::int64_t rows, std::int64_t width) {
  return dim3(BlocksFor(width, kActivationColumns<kVector>),
              static_cast<unsigned>(NormBlocks(rows)));
}

template <class Element>
bool Aligned(const BiasActivation<Element>& p) {
  return RowsAligned<Element>(p.width, p.product, p.out) && RowsAligned<float>(p.width, p.bias);
}

}  // namespace

template <class Element>
KernelError BiasActivationForwardOnCuda(const BiasActivation<Element>& problem, CudaStream stream) {
  if (problem.rows == 0) return nullptr;
  WithActivationVector<Element>(Aligned(problem), [&](auto vector) {
    BiasActivationForwardKernel<Element, vector.value>
        <<<GridOf<vector.value>(problem.rows, problem.width), kActivationThreads, 0, stream>>>(
            problem);
  });
  return LaunchError();
}

template <class Element>
KernelError BiasActivationBackwardOnCuda(const BiasActivation<Element>& problem,
                                         const BiasActivationGradients<Element>& gradients,
                                         CudaStream stream) {
  if (problem.rows == 0) return nullptr;
  const bool aligned =
      Aligned(problem) && RowsAligned<Element>(problem.width, gradients.out, gradients.product);
  WithActivationVector<Element>(aligned, [&](auto vector) {
    BiasActivationBackwardKernel<Element, vector.value>
        <<<GridOf<vector.value>(problem.rows, problem.width), kActivationThreads, 0, stream>>>(
            problem, gradients);
  });
  return LaunchError();
}

KernelError BiasActivationReduceOnCuda(const float* partial, std::int64_t blocks,
                                       std::int64_t width, float* to_bias, CudaStream stream) {
  BlockSumsKernel<1>
      <<<dim3(BlocksFor(width, kWarpLanes), 1), dim3(kWarpLanes, kSumSlices), 0, stream>>>(
          {partial, blocks, width, {to_bias}});
  return LaunchError();
}

template KernelError BiasActivationForwardOnCuda(const BiasActivation<float>&, CudaStream);
template KernelError BiasActivationForwardOnCuda(const BiasActivation<Bf16>&, CudaStream);
template KernelError BiasActivationBackwardOnCuda(const BiasActivation<float>&,
                                                  const BiasActivationGradients<float>&,
                                                  CudaStream);
template KernelError BiasActivationBackwardOnCuda(const BiasActivation<Bf16>&,
                                                  const BiasActivationGradients<Bf16>&, CudaStream);

}  // namespace pelab::trainer
