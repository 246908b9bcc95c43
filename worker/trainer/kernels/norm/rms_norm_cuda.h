// The passes of rms_norm.h on CUDA, with the same formulas and letters. The conditions are those of
// residual_norm_cuda.h. At most kMostNormWidth columns. The caller adds the blocks' sums for gamma.
//
// Bytes moved, with e the size of an element: forward 2 R W e (x; n), backward 3 R W e (x, dn; dx).
#pragma once

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/norm/rms_norm.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

template <class Element>
KernelError RmsNormForwardOnCuda(const RmsNorm<Element>& problem, CudaStream stream);
template <class Element>
KernelError RmsNormBackwardOnCuda(const RmsNorm<Element>& problem,
                                  const RmsNormGradients<Element>& gradients, CudaStream stream);

}  // namespace pelab::trainer
