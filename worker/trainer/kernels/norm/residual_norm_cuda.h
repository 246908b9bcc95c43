// The passes of residual_norm.h on CUDA, with the same formulas and letters. Every pointer is to
// device memory and need not be aligned to 16 bytes. Element is float or Bf16. Sums and statistics
// are computed in 32 bits.
//
// Calls only queue work on `stream` and may come from any thread. They return null, or the text of
// the CUDA error. Results depend only on the shape of the problem: there are no atomics, and every
// sum has a fixed order.
//
// Bytes moved, with e the size of an element (parameters and statistics not counted): forward at
// most 4 R D e (x, z; y, n), backward 5 R D e (dy, dn, y; dx, dz).
#pragma once

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/norm/residual_norm.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

inline constexpr std::int64_t kMostNormWidth = 1024;
inline bool ResidualNormFitsCuda(std::int64_t width) {
  return width >= 1 && width <= kMostNormWidth;
}

template <class Element>
KernelError ResidualNormForwardOnCuda(const ResidualNorm<Element>& problem, CudaStream stream);
// `partial` may be null if there is neither norm nor bias.
template <class Element>
KernelError ResidualNormBackwardOnCuda(const ResidualNorm<Element>& problem,
                                       const ResidualNormGradients<Element>& gradients,
                                       CudaStream stream);
// Like ResidualNormReduce, for each member: to… (M, D). The order of the blocks is fixed, but not
// the same as there.
KernelError ResidualNormReduceOnCuda(const float* partial, std::int64_t members,
                                     std::int64_t blocks, std::int64_t width, float* to_gamma,
                                     float* to_beta, float* to_bias, CudaStream stream);

}  // namespace pelab::trainer
