#include "worker/agent/devices.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace pelab::agent {
namespace {

// The device that one entry of CUDA_VISIBLE_DEVICES names; nullopt if it names none or several.
std::optional<GpuInfo> Resolve(Nvml& nvml, const std::vector<GpuInfo>& all,
                               absl::string_view entry) {
  int index = 0;
  if (absl::SimpleAtoi(entry, &index)) {
    if (index < 0 || index >= static_cast<int>(all.size())) return std::nullopt;
    return all[index];
  }
  if (absl::StartsWith(entry, "MIG-")) {
    absl::StatusOr<GpuInfo> slice = nvml.DeviceByUuid(std::string(entry));
    if (!slice.ok()) return std::nullopt;
    return *slice;
  }
  if (!absl::StartsWith(entry, "GPU-")) return std::nullopt;
  std::optional<GpuInfo> found;
  for (const GpuInfo& gpu : all) {
    if (!absl::StartsWith(gpu.uuid, entry)) continue;
    if (found.has_value()) return std::nullopt;
    found = gpu;
  }
  return found;
}

v1::Slot MakeSlot(int number, std::string device, std::string kind, std::string name,
                  std::uint64_t memory, int pack) {
  v1::Slot slot;
  slot.set_slot(number);
  slot.set_device(std::move(device));
  slot.set_device_kind(std::move(kind));
  slot.set_device_name(std::move(name));
  slot.set_memory_bytes(memory);
  slot.set_pack(pack);
  return slot;
}

}  // namespace

absl::StatusOr<std::vector<GpuInfo>> VisibleGpus(Nvml& nvml,
                                                 const std::optional<std::string>& visible) {
  PELAB_ASSIGN_OR_RETURN(const int count, nvml.Count());
  std::vector<GpuInfo> all;
  for (int index = 0; index < count; ++index) {
    PELAB_ASSIGN_OR_RETURN(all.emplace_back(), nvml.Device(index));
  }
  if (!visible.has_value()) return all;
  std::vector<GpuInfo> shown;
  std::set<std::string> seen;
  for (const absl::string_view entry : absl::StrSplit(*visible, ',')) {
    std::optional<GpuInfo> gpu = Resolve(nvml, all, absl::StripAsciiWhitespace(entry));
    if (!gpu.has_value()) break;
    if (!seen.insert(gpu->uuid).second) return std::vector<GpuInfo>();
    shown.push_back(*std::move(gpu));
  }
  return shown;
}

std::vector<SlotPlan> PlanSlots(const std::vector<GpuInfo>& gpus, const SlotOptions& options,
                                int cores, std::uint64_t memory_bytes) {
  std::vector<SlotPlan> plans;
  for (std::size_t device = 0; device < gpus.size(); ++device) {
    const std::uint64_t memory = gpus[device].memory_bytes / options.slots_per_device;
    for (int share = 0; share < options.slots_per_device; ++share) {
      const int number = static_cast<int>(plans.size());
      plans.push_back({MakeSlot(number, absl::StrCat("cuda:", device), "gpu", gpus[device].name,
                                memory, options.pack.value_or(kGpuPack)),
                       "cuda:0", gpus[device].uuid, options.slots_per_device > 1 ? memory : 0});
    }
  }
  if (!gpus.empty()) return plans;
  const int count =
      options.cpu_slots > 0 ? options.cpu_slots : std::max(1, cores / options.threads_per_slot);
  for (int number = 0; number < count; ++number) {
    plans.push_back(
        {MakeSlot(number, "cpu", "cpu", "", memory_bytes / count, options.pack.value_or(kCpuPack)),
         "cpu", ""});
  }
  return plans;
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::uint64_t HostMemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0
             ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
             : 0;
}

}  // namespace pelab::agent
