// The part of NVIDIA's management library (NVML) that devices.h and loads.h need. The library is
// loaded at run time, because the daemon must also start on a host without a driver.
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
  // Over the last sample period; nullopt if the device does not report it (MIG slices).
  std::optional<int> busy_percent;
  std::uint64_t memory_used = 0;  // bytes used by all processes together
  std::uint64_t memory_total = 0;
};

// An interface, so that tests need no GPU. Not thread-safe.
class Nvml {
 public:
  virtual ~Nvml() = default;
  // The number of GPUs. Indices are in PCI bus order.
  virtual absl::StatusOr<int> Count() = 0;
  virtual absl::StatusOr<GpuInfo> Device(int index) = 0;
  // Finds a GPU or a MIG slice. NOT_FOUND if there is none.
  virtual absl::StatusOr<GpuInfo> DeviceByUuid(const std::string& uuid) = 0;
  // The current load of the device with exactly this UUID. NOT_FOUND if there is none.
  virtual absl::StatusOr<GpuLoad> Load(const std::string& uuid) = 0;
};

// NOT_FOUND if the library or the driver is missing.
absl::StatusOr<std::unique_ptr<Nvml>> LoadNvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace pelab::agent
