#include "worker/agent/loads.h"

namespace pelab::agent {

std::vector<std::pair<std::string, std::string>> GpusOf(const std::vector<SlotPlan>& plans) {
  std::vector<std::pair<std::string, std::string>> devices;
  for (const SlotPlan& plan : plans) {
    if (plan.cuda_visible_devices.empty()) continue;
    const std::pair device(plan.slot.device(), plan.cuda_visible_devices);
    if (devices.empty() || devices.back() != device) devices.push_back(device);
  }
  return devices;
}

DeviceLoads::DeviceLoads(std::unique_ptr<Nvml> nvml, const std::vector<SlotPlan>& plans)
    : nvml_(std::move(nvml)), devices_(GpusOf(plans)) {}

std::vector<DeviceLoads::Gpu> DeviceLoads::Gpus() {
  std::vector<Gpu> gpus;
  if (nvml_ == nullptr) return gpus;
  for (const auto& [device, uuid] : devices_) {
    absl::StatusOr<GpuLoad> now = nvml_->Load(uuid);
    if (now.ok()) gpus.push_back({device, *std::move(now)});
  }
  return gpus;
}

std::vector<v1::DeviceLoad> DeviceLoads::Sample() {
  std::vector<v1::DeviceLoad> loads;
  for (const Gpu& gpu : Gpus()) {
    v1::DeviceLoad& load = loads.emplace_back();
    load.set_device(gpu.device);
    if (gpu.load.busy_percent) load.set_busy_percent(*gpu.load.busy_percent);
    load.set_memory_used(gpu.load.memory_used);
    load.set_memory_total(gpu.load.memory_total);
    if (gpu.load.energy_joules) load.set_energy_joules(*gpu.load.energy_joules);
  }
  return loads;
}

}  // namespace pelab::agent
