// Heads of content channels and rotary channels side by side. The fused version
// (kernels/rotary/rotary_heads.h) makes one pass over memory; on a CPU it needs 32-bit floats, on
// CUDA it also accepts bfloat16. The plain version uses LibTorch operations and works for every
// device and type. Both agree within rounding.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace pelab::trainer {

// Reads adjacent pairs of `x` (B, n, H, width) as complex numbers and multiplies them by the
// rotations `rotations` (n, 1 or H, width/2).
at::Tensor TurnPairs(const at::Tensor& x, const at::Tensor& rotations);

// Rotates the rotary channels and appends them to the content channels of each head.
//   content    (B, T, H * d)
//   rotary     (B, T, H * r), or (B, T, r) if all heads share them
//   rotations  (T, 1, r/2), complex
// Returns (B, T, H, d + r).
at::Tensor RotaryHeadsOf(const at::Tensor& content, const at::Tensor& rotary,
                         const at::Tensor& rotations, std::int64_t heads);
at::Tensor RotaryHeadsPlainly(const at::Tensor& content, const at::Tensor& rotary,
                              const at::Tensor& rotations, std::int64_t heads);

}  // namespace pelab::trainer
