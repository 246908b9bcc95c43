// The part of NVIDIA's management library that devices.h and loads.h need, loaded at run time: a host
// without a driver has no such library, and the daemon must start there too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace pelab::agent {

struct GpuInfo {
  std::string uuid;  // "GPU-…" or "MIG-…"
  std::string name;
  std::uint64_t memory_bytes = 0;
};

struct GpuLoad {
  std::optional<int>
      busy_percent;  // of the last sample period; nullopt where the device does not say (MIG slices)
  std::uint64_t memory_used = 0;  // bytes, whoever uses them
  std::uint64_t memory_total = 0;
};

// Behind an interface so that discovery is tested without a GPU. Not thread-safe.
class Nvml {
 public:
  virtual ~Nvml() = default;
  // In the order of the PCI bus.
  virtual absl::StatusOr<int> Count() = 0;
  virtual absl::StatusOr<GpuInfo> Device(int index) = 0;
  // Of a GPU or a MIG slice. NOT_FOUND where there is none.
  virtual absl::StatusOr<GpuInfo> DeviceByUuid(const std::string& uuid) = 0;
  // Of the device with this whole UUID, as it is now. NOT_FOUND where there is none.
  virtual absl::StatusOr<GpuLoad> Load(const std::string& uuid) = 0;
};

// NOT_FOUND where the library or the driver is missing.
absl::StatusOr<std::unique_ptr<Nvml>> LoadNvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace pelab::agent
