// The root-mean-square norm of the parts of a tensor. The fused version (kernels/norm/rms_norm.h)
// makes one pass over memory; on a CPU it needs 32-bit floats and parts whose widths are multiples
// of 16; on CUDA it accepts widths of up to 1,024, and also bfloat16. The plain version uses
// LibTorch operations and works for every device, type and size. Both agree within rounding.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace pelab::trainer {

// Splits x (B, T, n * W) into n parts of W channels (n is 1 or 2) and returns each part normalized:
// (B, T, W). `gammas` has n parameters: (W), or (M, W) for M members (parameters/members.h).
std::vector<at::Tensor> RmsNorms(const at::Tensor& x, const std::vector<at::Tensor>& gammas,
                                 double epsilon);
std::vector<at::Tensor> RmsNormsPlainly(const at::Tensor& x, const std::vector<at::Tensor>& gammas,
                                        double epsilon);

}  // namespace pelab::trainer
