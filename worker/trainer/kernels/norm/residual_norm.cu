#include "worker/trainer/kernels/launch.cuh"
#include "worker/trainer/kernels/norm/block_sums_kernels.cuh"
#include "worker/trainer/kernels/norm/residual_norm_cuda.h"
#include "worker/trainer/kernels/norm/residual_norm_kernels.cuh"

namespace pelab::trainer {
template <class Element>
KernelError ResidualNormForwardOnCuda(const ResidualNorm<Element>& problem, CudaStream stream) {
  if (problem.rows == 0) return nullptr;
  const unsigned blocks = BlocksFor(problem.rows, kNormWarps * kForwardRows);
  WithPieces<Element>(problem.width, Aligned(problem), [&](auto vector, auto chunks) {
    ResidualNormForwardKernel<Element, vector.value, chunks.value>
        <<<MemberGrid(blocks, problem.members), kNormThreads, 0, stream>>>(problem);
  });
  return LaunchError();
}

template <class Element>
KernelError ResidualNormBackwardOnCuda(const ResidualNorm<Element>& problem,
                                       const ResidualNormGradients<Element>& gradients,
                                       CudaStream stream) {
  if (problem.rows == 0) return nullptr;
  const auto blocks = static_cast<unsigned>(NormBlocks(problem.rows));
  const std::size_t shared = kNormWarps * problem.width * sizeof(float);
  const bool aligned =
      Aligned(problem) && RowsAligned<Element>(problem.width, gradients.sum, gradients.normed,
                                               gradients.residual, gradients.product);
  WithPieces<Element>(problem.width, aligned, [&](auto vector, auto chunks) {
    ResidualNormBackwardKernel<Element, vector.value, chunks.value>
        <<<MemberGrid(blocks, problem.members), kNormThreads, shared, stream>>>(problem, gradients);
  });
  return LaunchError();
}

KernelError ResidualNormReduceOnCuda(const float* partial, std::int64_t members,
                                     std::int64_t blocks, std::int64_t width, float* to_gamma,
                                     float* to_beta, float* to_bias, CudaStream stream) {
  const BlockSums<3> sums{partial, blocks, width, {to_gamma, to_beta, to_bias}};
  BlockSumsKernel<<<dim3(BlocksFor(width, kWarpLanes), 3, static_cast<unsigned>(members)),
                    dim3(kWarpLanes, kSumSlices), 0, stream>>>(sums);
  return LaunchError();
}

template KernelError ResidualNormForwardOnCuda(const ResidualNorm<float>&, CudaStream);
template KernelError ResidualNormForwardOnCuda(const ResidualNorm<Bf16>&, CudaStream);
template KernelError ResidualNormBackwardOnCuda(const ResidualNorm<float>&,
                                                const ResidualNormGradients<float>&, CudaStream);
template KernelError ResidualNormBackwardOnCuda(const ResidualNorm<Bf16>&,
                                                const ResidualNormGradients<Bf16>&, CudaStream);

}  // namespace pelab::trainer
