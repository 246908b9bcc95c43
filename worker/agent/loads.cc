#include "worker/agent/loads.h"

namespace pelab::agent {

DeviceLoads::DeviceLoads(std::unique_ptr<Nvml> nvml, const std::vector<SlotPlan>& plans)
    : nvml_(std::move(nvml)) {
  for (const SlotPlan& plan : plans) {
    if (plan.cuda_visible_devices.empty()) continue;
    const std::pair device(plan.slot.device(), plan.cuda_visible_devices);
    if (devices_.empty() || devices_.back() != device) devices_.push_back(device);
  }
}

std::vector<v1::DeviceLoad> DeviceLoads::Sample() {
  std::vector<v1::DeviceLoad> loads;
  if (nvml_ == nullptr) return loads;
  for (const auto& [device, uuid] : devices_) {
    const absl::StatusOr<GpuLoad> now = nvml_->Load(uuid);
    if (!now.ok()) continue;
    v1::DeviceLoad& load = loads.emplace_back();
    load.set_device(device);
    if (now->busy_percent) load.set_busy_percent(*now->busy_percent);
    load.set_memory_used(now->memory_used);
    load.set_memory_total(now->memory_total);
  }
  return loads;
}

}  // namespace pelab::agent
