// The operations between a layer's matrix products. Each has a fused and a plain version. The fused
// version (worker/trainer/kernels) makes one pass over memory; on a CPU it needs 32-bit floats and
// widths that are multiples of 16, on CUDA it also accepts bfloat16. The plain version uses
// LibTorch operations and is correct for every device, type and size. Both agree within rounding
// and drop the same elements.
//
// Shapes: (B, T, D) or (B, T, F), with B examples of T computed positions. Parameters (n) may
// belong to several members: (M, n) with a constant stride, and the examples of one member after
// those of another (parameters/members.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

#include "worker/trainer/config/config.h"
#include "worker/trainer/model/dropout.h"

namespace pelab::trainer {

// The residual stream between two parts of the decoder.
struct Residual {
  Residual() = default;
  Residual(at::Tensor stream, at::Tensor norm_of_it = {})  // NOLINT(google-explicit-constructor)
      : x(std::move(stream)), normed(std::move(norm_of_it)) {}

  at::Tensor x;       // (B, T, D)
  at::Tensor normed;  // x after the norm of the next part; undefined: not computed yet
};

// A LayerNorm over the last dimension.
struct NormWeights {
  at::Tensor gamma;  // (D)
  at::Tensor beta;   // (D)
  double epsilon = 0;
};

// The place of a dropout mask within a step; `dropout` null: evaluation.
struct DropoutPlace {
  const Dropout* dropout = nullptr;
  std::int64_t layer = 0;
  DropoutSite site = DropoutSite::kOutput;
};

// x + dropout(product + bias), and its norm if `norm` is not null. `bias` (D) may be undefined.
Residual AddProduct(const at::Tensor& x, const at::Tensor& product, const at::Tensor& bias,
                    const NormWeights* norm, const DropoutPlace& place);
Residual AddProductPlainly(const at::Tensor& x, const at::Tensor& product, const at::Tensor& bias,
                           const NormWeights* norm, const DropoutPlace& place);

// For variants that share a residual stream: x (B, T, D) minus the contribution of each variant (V
// B, T, D), variant after variant, and the norm of the result. Has no gradients.
Residual TakeAway(const at::Tensor& x, const at::Tensor& contributions, const NormWeights& norm);
Residual TakeAwayPlainly(const at::Tensor& x, const at::Tensor& contributions,
                         const NormWeights& norm);

// The norm alone.
at::Tensor Norm(const at::Tensor& x, const NormWeights& norm);
at::Tensor NormPlainly(const at::Tensor& x, const NormWeights& norm);

// dropout(activation(product + bias)); `bias` (F).
at::Tensor BiasActivate(const at::Tensor& product, const at::Tensor& bias, Activation activation,
                        const DropoutPlace& place);
at::Tensor BiasActivatePlainly(const at::Tensor& product, const at::Tensor& bias,
                               Activation activation, const DropoutPlace& place);

}  // namespace pelab::trainer
