#include "worker/trainer/train/device_step.h"

#include <ATen/ATen.h>

#include "worker/trainer/model/kernel_calls.h"

namespace pelab::trainer {
namespace {

at::Tensor RateTable(const Schedule& schedule, const AdamWSettings& settings, std::int64_t steps) {
  static_assert(sizeof(AdamWRates) == 3 * sizeof(float));
  const at::Tensor table = at::empty({steps, 3}, at::TensorOptions().dtype(at::kFloat));
  auto* const rates = reinterpret_cast<AdamWRates*>(table.data_ptr<float>());
  for (std::int64_t step = 0; step < steps; ++step) {
    rates[step] = AdamWRatesAt(settings, step, schedule.RateAt(step));
  }
  return table;
}

}  // namespace

DeviceStep::DeviceStep(const spec::Job& job, const ModelConfig& config, const Schedule& schedule,
                       const AdamWSettings& settings, std::int64_t steps, at::Device device)
    : seed_key_(DropoutSeedKey(job.seed)),
      places_(config.layers * kDropoutSites),
      step_(at::full({1}, -1, at::TensorOptions().dtype(at::kLong).device(device))),
      keys_(at::zeros({places_, 2}, at::TensorOptions().dtype(at::kInt).device(device))),
      rates_(RateTable(schedule, settings, steps).to(device)) {}

void DeviceStep::StandBefore(std::int64_t step) { step_.fill_(step - 1); }

void DeviceStep::Begin() {
  DropoutStep begun;
  begun.seed_key = seed_key_;
  begun.places = places_;
  begun.step = step_.data_ptr<std::int64_t>();
  begun.keys = static_cast<std::uint32_t*>(keys_.data_ptr());
  BeginDropoutStep(step_.device(), begun);
}

const std::uint32_t* DeviceStep::keys() const {
  return static_cast<const std::uint32_t*>(keys_.data_ptr());
}

const AdamWRates* DeviceStep::rates() const {
  return static_cast<const AdamWRates*>(rates_.data_ptr());
}

const std::int64_t* DeviceStep::step() const { return step_.data_ptr<std::int64_t>(); }

}  // namespace pelab::trainer
