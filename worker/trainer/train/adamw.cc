#include "worker/trainer/train/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "worker/trainer/operations/kernel_calls.h"

namespace pelab::trainer {

AdamW::AdamW(const experiment::Job& job, ParameterSet* parameters)
    : parameters_(*parameters),
      settings_{job.Real("train.beta1"), job.Real("train.beta2"), job.Real("train.epsilon"),
                job.Real("train.weight_decay")},
      first_(at::zeros_like(parameters->flat())),
      second_(at::zeros_like(parameters->flat())) {}

AdamWPass AdamW::Pass() {
  AdamWPass pass;
  pass.count = parameters_.flat().numel();
  pass.parameters = parameters_.flat().data_ptr<float>();
  pass.gradient = parameters_.flat_gradient().data_ptr<float>();
  pass.first = first_.data_ptr<float>();
  pass.second = second_.data_ptr<float>();
  SetAdamW(settings_, &pass);
  return pass;
}

void AdamW::Step(std::int64_t step, double learning_rate) {
  parameters_.GatherGradients();
  if (!parameters_.device().is_cpu() || !KernelsTake(first_)) {
    StepPlainly(step, learning_rate);
    return parameters_.Round();
  }
  AdamWPass pass = Pass();
  const AdamWRates rates = AdamWRatesAt(settings_, step, learning_rate);
  pass.rates = &rates;
  Update(parameters_.device(), pass);
  parameters_.Round();
}

void AdamW::Step(const DeviceStep& at) {
  parameters_.GatherGradients();
  AdamWPass pass = Pass();
  pass.rounded = DataOf<Bf16>(parameters_.rounded());
  pass.rates = at.rates();
  pass.step = at.step();
  Update(parameters_.device(), pass);
}

void AdamW::StepPlainly(std::int64_t step, double learning_rate) {
  const at::NoGradGuard no_grad;
  at::Tensor flat = parameters_.flat();
  at::Tensor gradient = parameters_.flat_gradient();
  const double t = static_cast<double>(step) + 1;
  const double correction1 = 1 - std::pow(settings_.beta1, t);
  const double correction2 = std::sqrt(1 - std::pow(settings_.beta2, t));
  flat.mul_(1 - learning_rate * settings_.weight_decay);
  first_.mul_(settings_.beta1).add_(gradient, 1 - settings_.beta1);
  second_.mul_(settings_.beta2).addcmul_(gradient, gradient, 1 - settings_.beta2);
  const at::Tensor denominator = second_.sqrt().div_(correction2).add_(settings_.epsilon);
  flat.addcdiv_(first_, denominator, -learning_rate / correction1);
  gradient.zero_();
}

}  // namespace pelab::trainer
