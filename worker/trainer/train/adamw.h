// AdamW with decoupled weight decay on every parameter (Loshchilov & Hutter, "Decoupled Weight Decay Regularization",
// 2019, algorithm 2, as PyTorch's torch.optim.AdamW computes it).
//
//   p <- p (1 - lr wd);  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
//   p <- p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)          t = 1, 2, …
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/spec/canonical.h"
#include "worker/trainer/model/parameters.h"

namespace pelab::trainer {

class AdamW {
 public:
  // `parameters` outlives it and is materialised.
  AdamW(const spec::Job& job, ParameterSet* parameters);

  // One step with the gradients in parameters->flat_gradient(), which it sets to zero afterwards. `step` counts from 0.
  void Step(std::int64_t step, double learning_rate);

  // First and second moments, (count()); writing here restores a state.
  at::Tensor& first_moment() { return first_; }
  at::Tensor& second_moment() { return second_; }

 private:
  ParameterSet& parameters_;
  double beta1_;
  double beta2_;
  double epsilon_;
  double weight_decay_;
  at::Tensor first_;
  at::Tensor second_;
};

}  // namespace pelab::trainer
