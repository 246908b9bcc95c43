// The passes of bias_activation.h on CUDA, with the same formulas and letters. What
// residual_norm_cuda.h says of pointers, streams, errors and sums holds here too. The width is not
// limited; a member has at most kMostActivationRows rows. The absolute error of Phi's tail is about
// 1e-7.
//
// Bytes moved, with e the size of an element: forward 2 R F e (h; a), backward 3 R F e (h, da; dh).
#pragma once

#include "worker/trainer/kernels/activation/bias_activation.h"
#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// The y dimension of a grid has at most 65535 blocks, each for kNormBlockRows rows.
inline constexpr std::int64_t kMostActivationRows = 65535 * kNormBlockRows;
inline bool BiasActivationFitsCuda(std::int64_t rows) { return rows <= kMostActivationRows; }

template <class Element>
KernelError BiasActivationForwardOnCuda(const BiasActivation<Element>& problem, CudaStream stream);
template <class Element>
KernelError BiasActivationBackwardOnCuda(const BiasActivation<Element>& problem,
                                         const BiasActivationGradients<Element>& gradients,
                                         CudaStream stream);

}  // namespace pelab::trainer
