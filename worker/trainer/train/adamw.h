// AdamW with decoupled weight decay on every parameter (Loshchilov & Hutter, "Decoupled Weight
// Decay Regularization", 2019, algorithm 2, as PyTorch's torch.optim.AdamW computes it).
//
//   p <- p (1 - lr wd);  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
//   p <- p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)          t = 1, 2, …
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/experiment/job.h"
#include "worker/trainer/kernels/adamw/adamw.h"
#include "worker/trainer/parameters/parameters.h"
#include "worker/trainer/train/device_step.h"

namespace pelab::trainer {

class AdamW {
 public:
  // `parameters` must outlive this object and be materialized.
  AdamW(const experiment::Job& job, ParameterSet* parameters);

  // Does one step with the gradients in parameters->flat_gradient() and then sets them to zero.
  // `step` counts from 0.
  void Step(std::int64_t step, double learning_rate);
  // The same on CUDA, for the device's current step.
  void Step(const DeviceStep& at);
  // The plain version of the update itself, with LibTorch operations: correct for every device and
  // type. The gradients must be in flat_gradient() already.
  void StepPlainly(std::int64_t step, double learning_rate);

  const AdamWSettings& settings() const { return settings_; }

  // First and second moments, in the layout of parameters->flat(). Write here to restore a state.
  at::Tensor& first_moment() { return first_; }
  at::Tensor& second_moment() { return second_; }

 private:
  AdamWPass Pass();

  ParameterSet& parameters_;
  AdamWSettings settings_;
  at::Tensor first_;
  at::Tensor second_;
};

}  // namespace pelab::trainer
