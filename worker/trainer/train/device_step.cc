#include "worker/trainer/train/device_step.h"

#include <ATen/ATen.h>

#include "worker/trainer/operations/kernel_calls.h"

namespace pelab::trainer {
namespace {

at::Tensor RateTable(const Schedule& schedule, const AdamWSettings& settings, std::int64_t steps) {
  static_assert(sizeof(AdamWRates) == 3 * sizeof(float));
  at::Tensor table = at::empty({steps, 3}, at::TensorOptions().dtype(at::kFloat));
  auto* const rates = reinterpret_cast<AdamWRates*>(table.data_ptr<float>());
  for (std::int64_t step = 0; step < steps; ++step) {
    rates[step] = AdamWRatesAt(settings, step, schedule.RateAt(step));
  }
  return table;
}

at::Tensor SeedKeys(const std::vector<std::int64_t>& seeds) {
  at::Tensor keys = at::empty({static_cast<std::int64_t>(seeds.size())}, at::kLong);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    keys.data_ptr<std::int64_t>()[i] = static_cast<std::int64_t>(DropoutSeedKey(seeds[i]));
  }
  return keys;
}

}  // namespace

DeviceStep::DeviceStep(const std::vector<std::int64_t>& seeds, const ModelConfig& config,
                       const Schedule& schedule, const AdamWSettings& settings, std::int64_t steps,
                       at::Device device)
    : places_(config.layers * kDropoutSites),
      seed_keys_(SeedKeys(seeds).to(device)),
      step_(at::full_like(seed_keys_, -1)),
      keys_(at::zeros({seed_keys_.size(0), places_, 2}, step_.options().dtype(at::kInt))),
      rates_(RateTable(schedule, settings, steps).to(device)) {}

void DeviceStep::StandBefore(std::int64_t step) { step_.fill_(step - 1); }

void DeviceStep::Begin() {
  DropoutStep begun;
  begun.members = seed_keys_.size(0);
  begun.seed_keys = static_cast<const std::uint64_t*>(seed_keys_.data_ptr());
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
