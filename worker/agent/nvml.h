// The part of NVIDIA's management library (NVML) that devices.h, loads.h, gpu_faults.h and energy.h
// need. The library is loaded at run time, because the daemon must also start on a host without a
// driver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

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
  // Since the driver was loaded; nullopt if the device or an old driver does not report it.
  std::optional<double> energy_joules;
};

struct GpuEvent {
  std::string uuid;
  std::uint64_t xid = 0;  // the number of an Xid error; 0: a memory error that was not corrected
};

// Waits for faults of GPUs. For one thread.
class NvmlEvents {
 public:
  virtual ~NvmlEvents() = default;
  // The next event; nullopt if none came in time. UNAVAILABLE if the driver is gone.
  virtual absl::StatusOr<std::optional<GpuEvent>> Wait(absl::Duration timeout) = 0;
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
  // The faults of these devices from now on. Devices that report none, such as MIG slices, are left
  // out. UNIMPLEMENTED if none of them does, or if the driver is too old. The result must not
  // outlive this object.
  virtual absl::StatusOr<std::unique_ptr<NvmlEvents>> Watch(
      const std::vector<std::string>& uuids) = 0;
};

// NOT_FOUND if the library or the driver is missing.
absl::StatusOr<std::unique_ptr<Nvml>> LoadNvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace pelab::agent
