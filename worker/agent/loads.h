// Measures how busy the GPUs of this worker's slots are.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pelab/v1/fleet.pb.h"
#include "worker/agent/devices.h"
#include "worker/agent/nvml.h"

namespace pelab::agent {

// Each GPU of the slots once: "cuda:0" and its UUID.
std::vector<std::pair<std::string, std::string>> GpusOf(const std::vector<SlotPlan>& plans);

// For one thread.
class DeviceLoads {
 public:
  // `nvml` may be null: then Sample returns nothing.
  DeviceLoads(std::unique_ptr<Nvml> nvml, const std::vector<SlotPlan>& plans);

  struct Gpu {
    std::string device;  // "cuda:0"
    GpuLoad load;
  };
  // Returns the load of each device. A device that does not answer is left out.
  std::vector<Gpu> Gpus();
  // The same, as the coordinator takes it.
  std::vector<v1::DeviceLoad> Sample();

 private:
  std::unique_ptr<Nvml> nvml_;
  std::vector<std::pair<std::string, std::string>> devices_;  // "cuda:0" and its UUID
};

}  // namespace pelab::agent
