// What this host can train on: its GPUs, within CUDA_VISIBLE_DEVICES, or its CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pelab/v1/fleet.pb.h"
#include "worker/agent/nvml.h"

namespace pelab::agent {

// GPUs that CUDA would show, in its order. `visible` is CUDA_VISIBLE_DEVICES, nullopt where it is
// not set: a list of indices (in the order of the PCI bus), UUIDs or beginnings of UUIDs
// ("GPU-8f3a", "MIG-…"). As in CUDA, the first entry that names no device ends the list, and a
// device that is named twice empties it.
absl::StatusOr<std::vector<GpuInfo>> VisibleGpus(Nvml& nvml,
                                                 const std::optional<std::string>& visible);

// How many jobs of one configuration a trainer takes at a time where nobody says: on a GPU small
// models leave most of it idle, on a CPU one keeps the slot's threads busy.
inline constexpr int kGpuPack = 8;
inline constexpr int kCpuPack = 1;

struct SlotOptions {
  int slots_per_device = 1;
  int cpu_slots = 0;  // 0: cores / threads_per_slot, at least 1
  int threads_per_slot = 1;
  std::optional<int> pack;  // at least 1; none: kGpuPack or kCpuPack
};

// Where a trainer finds SlotPlan::device_memory_bytes, in decimal.
inline constexpr char kDeviceMemoryVariable[] = "PELAB_DEVICE_MEMORY_BYTES";

// What one trainer runs on.
struct SlotPlan {
  v1::Slot slot;
  std::string trainer_device;        // "cuda:0" (the only one that the trainer sees), "cpu"
  std::string cuda_visible_devices;  // a UUID; "" hides all
  // What it may take of a device that it shares with other slots; 0: as much as there is.
  std::uint64_t device_memory_bytes = 0;
};

// Slots numbered from 0: slots_per_device on each GPU, or CPU slots where there is none. `cores`
// are those that this process may use, `memory_bytes` the host's.
std::vector<SlotPlan> PlanSlots(const std::vector<GpuInfo>& gpus, const SlotOptions& options,
                                int cores, std::uint64_t memory_bytes);

int UsableCores();
std::uint64_t HostMemoryBytes();

}  // namespace pelab::agent
