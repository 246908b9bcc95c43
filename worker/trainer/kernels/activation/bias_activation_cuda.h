// The passes of bias_activation.h on CUDA: the same formulae and letters. As in residual_norm_cuda.h; any width, at most
// kMostActivationRows rows. The tail of Phi is to 1e-7 of one.
//
// Bytes moved, with e those of an element: forward 2 R F e (h; a), backward 3 R F e (h, da; dh).
#pragma once

#include "worker/trainer/kernels/activation/bias_activation.h"
#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// Of a grid, 65535 blocks.
inline constexpr std::int64_t kMostActivationRows = 65535 * kNormBlockRows;
inline bool BiasActivationFitsCuda(std::int64_t rows) { return rows <= kMostActivationRows; }

template <class Element>
KernelError BiasActivationForwardOnCuda(const BiasActivation<Element>& problem, CudaStream stream);
template <class Element>
KernelError BiasActivationBackwardOnCuda(const BiasActivation<Element>& problem,
                                         const BiasActivationGradients<Element>& gradients,
                                         CudaStream stream);

}  // namespace pelab::trainer
