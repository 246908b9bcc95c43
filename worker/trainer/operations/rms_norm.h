// The root-mean-square norm of the parts of a tensor. The fused version (kernels/norm/rms_norm.h)
// makes one pass over memory; on a CPU it needs 32-bit floats and parts whose widths are multiples
// of 16, on CUDA it also accepts bfloat16. The plain version uses LibTorch operations and works for
// every device, type and size. Both agree within rounding.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace pelab::trainer {

// x (B, T, n W) has n parts of W channels, n being 1 or 2. Returns the norm of each: (B, T, W).
// `gammas`: n parameters (W), or (M, W) of several members (parameters/members.h).
std::vector<at::Tensor> RmsNorms(const at::Tensor& x, const std::vector<at::Tensor>& gammas,
                                 double epsilon);
std::vector<at::Tensor> RmsNormsPlainly(const at::Tensor& x, const std::vector<at::Tensor>& gammas,
                                        double epsilon);

}  // namespace pelab::trainer
