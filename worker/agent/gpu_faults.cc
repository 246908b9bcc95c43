#include "worker/agent/gpu_faults.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "worker/agent/loads.h"

namespace pelab::agent {
namespace {

constexpr absl::Duration kWait = absl::Milliseconds(500);  // how soon the thread ends

// Stopped processing; double-bit memory errors; the power controller's halt; row remapping that
// failed; NVLink; fallen off the bus; memory errors that were not contained; faults of the security
// and system processors; a memory error that was not recovered.
constexpr std::array<std::uint64_t, 11> kFatal = {46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 140};

}  // namespace

bool IsFatalXid(std::uint64_t xid) {
  return std::find(kFatal.begin(), kFatal.end(), xid) != kFatal.end();
}

GpuFaults::GpuFaults(std::unique_ptr<Nvml> nvml, const std::vector<SlotPlan>& plans)
    : nvml_(std::move(nvml)), devices_(GpusOf(plans)) {
  if (nvml_ == nullptr || devices_.empty()) return;
  std::vector<std::string> uuids;
  uuids.reserve(devices_.size());
  for (const auto& [device, uuid] : devices_) uuids.push_back(uuid);
  absl::StatusOr<std::unique_ptr<NvmlEvents>> events = nvml_->Watch(uuids);
  if (!events.ok()) {
    spdlog::info("Xid errors are not watched: {}", std::string(events.status().message()));
    return;
  }
  thread_ = std::thread([this, events = *std::move(events)] { Watch(*events); });
}

GpuFaults::~GpuFaults() {
  ending_ = true;
  if (thread_.joinable()) thread_.join();
}

void GpuFaults::Watch(NvmlEvents& events) {
  while (!ending_) {
    const absl::StatusOr<std::optional<GpuEvent>> event = events.Wait(kWait);
    if (!event.ok()) {
      // Such as after the driver was unloaded. Heartbeats and jobs show what follows.
      spdlog::warn("Xid errors are no longer watched: {}", std::string(event.status().message()));
      return;
    }
    if (*event) Take(**event);
  }
}

void GpuFaults::Take(const GpuEvent& event) {
  const auto found = std::find_if(devices_.begin(), devices_.end(),
                                  [&](const auto& one) { return one.second == event.uuid; });
  if (found == devices_.end()) return;
  const std::string& device = found->first;
  const std::string what =
      event.xid == 0 ? absl::StrCat("GPU ", device, " has a memory error that was not corrected")
                     : absl::StrCat("GPU ", device, " has Xid ", event.xid);
  spdlog::warn("{}", what);
  MutexLock lock(&mutex_);
  ++counts_[{device, event.xid}];
  if (broken_.empty() && (event.xid == 0 || IsFatalXid(event.xid))) broken_ = what;
}

std::string GpuFaults::Broken() const {
  MutexLock lock(&mutex_);
  return broken_;
}

std::vector<GpuFaults::Count> GpuFaults::Counts() const {
  std::vector<Count> counts;
  MutexLock lock(&mutex_);
  for (const auto& [of, times] : counts_) counts.push_back({of.first, of.second, times});
  return counts;
}

void AddErrors(const GpuFaults& faults, v1::Heartbeat& heartbeat) {
  for (const GpuFaults::Count& count : faults.Counts()) {
    v1::GpuErrors& errors = *heartbeat.add_gpu_errors();
    errors.set_device(count.device);
    errors.set_xid(count.xid);
    errors.set_times(count.times);
  }
}

}  // namespace pelab::agent
