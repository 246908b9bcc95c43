#include "worker/trainer/train/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

namespace pelab::trainer {

AdamW::AdamW(const spec::Job& job, ParameterSet* parameters)
    : parameters_(*parameters),
      beta1_(job.Real("train.beta1")),
      beta2_(job.Real("train.beta2")),
      epsilon_(job.Real("train.epsilon")),
      weight_decay_(job.Real("train.weight_decay")),
      first_(at::zeros_like(parameters->flat())),
      second_(at::zeros_like(parameters->flat())) {}

void AdamW::Step(std::int64_t step, double learning_rate) {
  const at::NoGradGuard no_grad;
  at::Tensor flat = parameters_.flat();
  at::Tensor gradient = parameters_.flat_gradient();
  const double t = static_cast<double>(step) + 1;
  const double correction1 = 1 - std::pow(beta1_, t);
  const double correction2 = std::sqrt(1 - std::pow(beta2_, t));
  flat.mul_(1 - learning_rate * weight_decay_);
  first_.mul_(beta1_).add_(gradient, 1 - beta1_);
  second_.mul_(beta2_).addcmul_(gradient, gradient, 1 - beta2_);
  const at::Tensor denominator = second_.sqrt().div_(correction2).add_(epsilon_);
  flat.addcdiv_(first_, denominator, -learning_rate / correction1);
  gradient.zero_();
}

}  // namespace pelab::trainer
