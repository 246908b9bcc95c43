#include "worker/trainer/kernels/activation/bias_activation_cuda.h"
#include "worker/trainer/kernels/activation/bias_activation_kernels.cuh"
#include "worker/trainer/kernels/launch.cuh"

namespace pelab::trainer {
namespace {

template <int kVector, class Element>
dim3 GridOf(const BiasActivation<Element>& p) {
  return dim3(BlocksFor(p.width, kActivationColumns<kVector>),
              static_cast<unsigned>(NormBlocks(p.rows)), static_cast<unsigned>(p.members.count));
}

}  // namespace

template <class Element>
KernelError BiasActivationForwardOnCuda(const BiasActivation<Element>& problem, CudaStream stream) {
  if (problem.rows == 0) return nullptr;
  WithActivationVector<Element>(Aligned(problem), [&](auto vector) {
    BiasActivationForwardKernel<Element, vector.value>
        <<<GridOf<vector.value>(problem), kActivationThreads, 0, stream>>>(problem);
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
        <<<GridOf<vector.value>(problem), kActivationThreads, 0, stream>>>(problem, gradients);
  });
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
