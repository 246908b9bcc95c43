// The passes of rotary_heads.h on CUDA. Every pointer is to device memory and need not be aligned
// to 16 bytes. Calls only queue work on `stream` and may come from any thread. They return null, or
// the text of the CUDA error. Results depend only on the shape of the problem.
//
// Bytes moved, with e the size of an element and n rotary heads: R (H (2 d + r) + n r) e each way.
#pragma once

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/portable.h"
#include "worker/trainer/kernels/rotary/rotary_heads.h"

namespace pelab::trainer {

template <class Element>
KernelError RotaryHeadsForwardOnCuda(const RotaryHeads<Element>& problem, CudaStream stream);
template <class Element>
KernelError RotaryHeadsBackwardOnCuda(const RotaryHeads<Element>& problem,
                                      const RotaryHeadsGradients<Element>& gradients,
                                      CudaStream stream);

}  // namespace pelab::trainer
