// The devices that this host can train on: its GPUs, within CUDA_VISIBLE_DEVICES, or its CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pelab/v1/fleet.pb.h"
#include "worker/agent/nvml.h"

namespace pelab::agent {

// The GPUs that CUDA would show, in CUDA's order. `visible` is the value of CUDA_VISIBLE_DEVICES,
// nullopt if it is not set. It lists indices (in PCI bus order), UUIDs or prefixes of UUIDs
// ("GPU-8f3a", "MIG-…"). As in CUDA, the first entry that names no device ends the list, and a
// device that is named twice makes the list empty.
absl::StatusOr<std::vector<GpuInfo>> VisibleGpus(Nvml& nvml,
                                                 const std::optional<std::string>& visible);

// The default number of jobs of one configuration that a trainer takes at a time. Small models
// leave most of a GPU idle, so several share it. On a CPU one job keeps the slot's threads busy.
inline constexpr int kGpuPack = 8;
inline constexpr int kCpuPack = 1;

struct SlotOptions {
  int slots_per_device = 1;
  int cpu_slots = 0;  // 0: cores / threads_per_slot, at least 1
  int threads_per_slot = 1;
  std::optional<int> pack;  // at least 1; nullopt: kGpuPack or kCpuPack
};

// The variable that gives a trainer its SlotPlan::device_memory_bytes, in decimal.
inline constexpr char kDeviceMemoryVariable[] = "PELAB_DEVICE_MEMORY_BYTES";

// The device that one trainer runs on.
struct SlotPlan {
  v1::Slot slot;
  std::string trainer_device;        // "cuda:0" (the only GPU that the trainer sees) or "cpu"
  std::string cuda_visible_devices;  // a GPU's UUID; "" hides all GPUs
  // The memory that the trainer may use of a device that it shares with other slots. 0: no limit.
  std::uint64_t device_memory_bytes = 0;
};

// The slots, numbered from 0: slots_per_device on each GPU, or CPU slots if there is no GPU.
// `cores` is the number of cores that this process may use, `memory_bytes` the host's memory.
std::vector<SlotPlan> PlanSlots(const std::vector<GpuInfo>& gpus, const SlotOptions& options,
                                int cores, std::uint64_t memory_bytes);

int UsableCores();
std::uint64_t HostMemoryBytes();

}  // namespace pelab::agent
