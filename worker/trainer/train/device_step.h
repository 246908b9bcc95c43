// Which step a CUDA device is at, kept on the device: what changes from step to step (dropout's keys, AdamW's rates) is
// looked up there, so that the very same calls, and a graph of them, do every step.
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
  // For a training of `steps` steps of members with these seeds (model/members.h).
  DeviceStep(const std::vector<std::int64_t>& seeds, const ModelConfig& config,
             const Schedule& schedule, const AdamWSettings& settings, std::int64_t steps,
             at::Device device);

  // The next Begin begins this step.
  void StandBefore(std::int64_t step);
  // Counts the step and makes its keys. Does not synchronise.
  void Begin();

  at::Device device() const { return step_.device(); }
  // All on the device. Of each member, and place layer * kDropoutSites + site: two words from keys() + 2 place on.
  const std::uint32_t* keys() const;
  const AdamWRates* rates() const;
  const std::int64_t* step() const;

 private:
  std::int64_t places_;
  at::Tensor seed_keys_;  // (M), 64-bit
  at::Tensor step_;       // (M), 64-bit: the same for all
  at::Tensor keys_;       // (M, places, 2), 32-bit
  at::Tensor rates_;      // (steps, 3)
};

}  // namespace pelab::trainer
