// The passes of residual_norm.h on CUDA: the same formulae and letters. Every pointer is to the device's memory, 16-byte
// aligned or not; Element is float or Bf16. Sums and statistics are made in 32 bits.
//
// Calls only queue work on `stream` and may come from any thread. Results depend on the problem's shape alone: no atomics,
// every sum in a fixed order. The text of what CUDA refuses, or null.
//
// Bytes moved, with e those of an element (parameters and statistics aside): forward at most 4 R D e (x, z; y, n), backward
// 5 R D e (dy, dn, y; dx, dz).
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
// `partial` may be null where there is neither norm nor bias.
template <class Element>
KernelError ResidualNormBackwardOnCuda(const ResidualNorm<Element>& problem,
                                       const ResidualNormGradients<Element>& gradients,
                                       CudaStream stream);
// As ResidualNormReduce, of each member: to… (M, D); the order of the blocks is another than there, and fixed.
KernelError ResidualNormReduceOnCuda(const float* partial, std::int64_t members,
                                     std::int64_t blocks, std::int64_t width, float* to_gamma,
                                     float* to_beta, float* to_bias, CudaStream stream);

}  // namespace pelab::trainer
