// The passes between a layer's matrix products. Each function has a fused way (worker/trainer/kernels: one pass over memory,
// 32-bit floats, widths that are whole vectors) and a plain one in LibTorch operations, right for every device, type and
// size; both agree within rounding and drop the same elements.
//
// Shapes: (B, T, D) or (B, T, F), of B examples with T computed positions. Parameters (n) may be those of several members, (M, n)
// at one distance, with a member's examples after the other's (model/members.h).
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
  at::Tensor normed;  // what the next part's norm makes of it; undefined: not made yet
};

// A LayerNorm over the last dimension.
struct NormWeights {
  at::Tensor gamma;  // (D)
  at::Tensor beta;   // (D)
  double epsilon = 0;
};

// Where in a step's randomness dropout stands; `dropout` null: evaluation.
struct DropoutPlace {
  const Dropout* dropout = nullptr;
  std::int64_t layer = 0;
  DropoutSite site = DropoutSite::kOutput;
};

// x + dropout(product + bias), and its norm where `norm` is not null. `bias` (D) may be undefined.
Residual AddProduct(const at::Tensor& x, const at::Tensor& product, const at::Tensor& bias,
                    const NormWeights* norm, const DropoutPlace& place);
Residual AddProductPlainly(const at::Tensor& x, const at::Tensor& product, const at::Tensor& bias,
                           const NormWeights* norm, const DropoutPlace& place);

// Variants that share a residual stream, without gradients: x (B, T, D) less each variant's contribution (V B, T, D), variant after
// variant, and the norm of that.
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
