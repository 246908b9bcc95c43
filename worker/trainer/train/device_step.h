// The current training step of a CUDA device, kept on the device. Kernels look up everything that
// changes from step to step (dropout's keys, AdamW's rates) there. The same calls, or a graph of
// them, can therefore run every step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/trainer/config/config.h"
#include "worker/trainer/kernels/adamw/adamw.h"
#include "worker/trainer/train/schedule.h"

namespace pelab::trainer {

class DeviceStep {
 public:
  // For a training of `steps` steps, with one member per seed (parameters/members.h).
  DeviceStep(const std::vector<std::int64_t>& seeds, const ModelConfig& config,
             const Schedule& schedule, const AdamWSettings& settings, std::int64_t steps,
             at::Device device);

  // Makes `step` the step that the next Begin starts.
  void StandBefore(std::int64_t step);
  // Advances to the next step and makes its keys. Does not synchronize.
  void Begin();

  at::Device device() const { return step_.device(); }
  // All three pointers are to the device's memory. Place p (layer * kDropoutSites + site) of member
  // m has its two key words at keys() + 2 (m places + p).
  const std::uint32_t* keys() const;
  const AdamWRates* rates() const;
  const std::int64_t* step() const;

 private:
  std::int64_t places_;
  at::Tensor seed_keys_;  // (M), 64-bit
  at::Tensor step_;       // (M), 64-bit: the same for all members
  at::Tensor keys_;       // (M, places, 2), 32-bit
  at::Tensor rates_;      // (steps, 3)
};

}  // namespace pelab::trainer
