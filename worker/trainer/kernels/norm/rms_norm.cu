#include "worker/trainer/kernels/launch.cuh"
#include "worker/trainer/kernels/norm/rms_norm_cuda.h"
#include "worker/trainer/kernels/norm/rms_norm_kernels.cuh"

namespace pelab::trainer {

template <class Element>
KernelError RmsNormForwardOnCuda(const RmsNorm<Element>& problem, CudaStream stream) {
  if (problem.rows == 0) return nullptr;
  const unsigned blocks = BlocksFor(problem.rows, kNormWarps * kForwardRows);
  WithPieces<Element>(problem.width, Aligned(problem), [&](auto vector, auto chunks) {
    RmsNormForwardKernel<Element, vector.value, chunks.value>
        <<<MemberGrid(blocks, problem.members), kNormThreads, 0, stream>>>(problem);
  });
  return LaunchError();
}

template <class Element>
KernelError RmsNormBackwardOnCuda(const RmsNorm<Element>& problem,
                                  const RmsNormGradients<Element>& gradients, CudaStream stream) {
  if (problem.rows == 0) return nullptr;
  const auto blocks = static_cast<unsigned>(NormBlocks(problem.rows));
  const std::size_t shared = kNormWarps * problem.width * sizeof(float);
  const bool aligned =
      Aligned(problem) && RowsAligned<Element>(problem.width, gradients.normed, gradients.x);
  WithPieces<Element>(problem.width, aligned, [&](auto vector, auto chunks) {
    RmsNormBackwardKernel<Element, vector.value, chunks.value>
        <<<MemberGrid(blocks, problem.members), kNormThreads, shared, stream>>>(problem, gradients);
  });
  return LaunchError();
}

template KernelError RmsNormForwardOnCuda(const RmsNorm<float>&, CudaStream);
template KernelError RmsNormForwardOnCuda(const RmsNorm<Bf16>&, CudaStream);
template KernelError RmsNormBackwardOnCuda(const RmsNorm<float>&, const RmsNormGradients<float>&,
                                           CudaStream);
template KernelError RmsNormBackwardOnCuda(const RmsNorm<Bf16>&, const RmsNormGradients<Bf16>&,
                                           CudaStream);

}  // namespace pelab::trainer
