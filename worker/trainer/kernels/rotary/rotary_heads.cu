#include "worker/trainer/kernels/launch.cuh"
#include "worker/trainer/kernels/rotary/rotary_heads_cuda.h"
#include "worker/trainer/kernels/rotary/rotary_heads_kernels.cuh"

namespace pelab::trainer {

template <class Element>
KernelError RotaryHeadsForwardOnCuda(const RotaryHeads<Element>& problem, CudaStream stream) {
  if (problem.rows == 0) return nullptr;
  WithRotaryVector<Element>(Aligned(problem), [&](auto vector) {
    RotaryHeadsForwardKernel<Element, vector.value>
        <<<BlocksFor(problem.rows, kRotaryWarps), kRotaryThreads, 0, stream>>>(problem);
  });
  return LaunchError();
}

template <class Element>
KernelError RotaryHeadsBackwardOnCuda(const RotaryHeads<Element>& problem,
                                      const RotaryHeadsGradients<Element>& gradients,
                                      CudaStream stream) {
  if (problem.rows == 0) return nullptr;
  WithRotaryVector<Element>(Aligned(problem, gradients), [&](auto vector) {
    RotaryHeadsBackwardKernel<Element, vector.value>
        <<<BlocksFor(problem.rows, kRotaryWarps), kRotaryThreads, 0, stream>>>(problem, gradients);
  });
  return LaunchError();
}

template KernelError RotaryHeadsForwardOnCuda(const RotaryHeads<float>&, CudaStream);
template KernelError RotaryHeadsForwardOnCuda(const RotaryHeads<Bf16>&, CudaStream);
template KernelError RotaryHeadsBackwardOnCuda(const RotaryHeads<float>&,
                                               const RotaryHeadsGradients<float>&, CudaStream);
template KernelError RotaryHeadsBackwardOnCuda(const RotaryHeads<Bf16>&,
                                               const RotaryHeadsGradients<Bf16>&, CudaStream);

}  // namespace pelab::trainer
