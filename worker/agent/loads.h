// How busy the GPUs are that this worker's slots are on.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pelab/v1/fleet.pb.h"
#include "worker/agent/devices.h"
#include "worker/agent/nvml.h"

namespace pelab::agent {

// One thread.
class DeviceLoads {
 public:
  // `nvml` may be null: then there is nothing to say.
  DeviceLoads(std::unique_ptr<Nvml> nvml, const std::vector<SlotPlan>& plans);

  // A device that does not answer is left out.
  std::vector<v1::DeviceLoad> Sample();

 private:
  std::unique_ptr<Nvml> nvml_;
  std::vector<std::pair<std::string, std::string>> devices_;  // "cuda:0" and its UUID
};

}  // namespace pelab::agent
