#include "worker/scale/allocations.h"

#include <algorithm>
#include <utility>

namespace pelab::scale {
namespace {

constexpr int kMostAbsent = 2;
constexpr int kMostUnknown = 20;

// Slurm 22.05 to 25.05, squeue(1), "JOB STATE CODES".
constexpr std::pair<std::string_view, Phase> kStates[] = {
    {"PENDING", Phase::kWaiting},      {"CONFIGURING", Phase::kWaiting},
    {"REQUEUED", Phase::kWaiting},     {"REQUEUE_HOLD", Phase::kWaiting},
    {"REQUEUE_FED", Phase::kWaiting},  {"RESV_DEL_HOLD", Phase::kWaiting},
    {"SPECIAL_EXIT", Phase::kWaiting}, {"RUNNING", Phase::kStarting},
    {"SUSPENDED", Phase::kStarting},   {"STOPPED", Phase::kStarting},
    {"SIGNALING", Phase::kStarting},   {"RESIZING", Phase::kStarting},
    {"STAGE_OUT", Phase::kStarting},   {"COMPLETING", Phase::kEnding},
    {"COMPLETED", Phase::kOver},       {"TIMEOUT", Phase::kOver},
    {"PREEMPTED", Phase::kOver},       {"CANCELLED", Phase::kOver},
    {"NODE_FAIL", Phase::kOver},       {"BOOT_FAIL", Phase::kOver},
    {"DEADLINE", Phase::kOver},        {"OUT_OF_MEMORY", Phase::kOver},
    {"FAILED", Phase::kOver},          {"REVOKED", Phase::kOver}};

void Enter(Phase phase, absl::Duration now, Allocation& allocation) {
  const bool had_node = allocation.phase == Phase::kStarting || allocation.phase == Phase::kRunning;
  if (phase == Phase::kStarting) {
    if (!had_node) allocation.began = now;
    if (allocation.said_hello) phase = Phase::kRunning;
  }
  allocation.phase = phase;
}

void Update(const Sighting& sighting, absl::Duration now, Allocation& allocation) {
  allocation.absent = 0;
  allocation.state = sighting.state;
  allocation.reason = sighting.reason;
  const SlurmPhase slurm = PhaseOf(sighting.state);
  if (slurm.known) {
    allocation.unknown = 0;
    Enter(slurm.phase, now, allocation);
  } else if (++allocation.unknown >= kMostUnknown) {
    allocation.phase = Phase::kOver;
  }
}

}  // namespace

SlurmPhase PhaseOf(std::string_view state) {
  for (const auto& [name, phase] : kStates) {
    if (name == state) return {true, phase};
  }
  return {};
}

const char* NameOf(Phase phase) {
  switch (phase) {
    case Phase::kWaiting:
      return "waiting";
    case Phase::kStarting:
      return "starting";
    case Phase::kRunning:
      return "running";
    case Phase::kEnding:
      return "ending";
    case Phase::kOver:
      return "over";
  }
  return "";
}

std::vector<Ended> Allocations::See(const std::vector<Sighting>& listed, absl::Duration now) {
  for (auto& [id, allocation] : all_) ++allocation.absent;
  for (const Sighting& sighting : listed) {
    const bool over =
        PhaseOf(sighting.state).known && PhaseOf(sighting.state).phase == Phase::kOver;
    // Ended allocations are listed for a while. One that this program never had is no news.
    if (over && all_.count(sighting.id) == 0) continue;
    Update(sighting, now, all_[sighting.id]);
  }
  std::vector<Ended> ended;
  for (auto at = all_.begin(); at != all_.end();) {
    const Allocation& allocation = at->second;
    if (allocation.phase == Phase::kOver || allocation.absent >= kMostAbsent) {
      ended.push_back({at->first, allocation.state, allocation.said_hello});
      at = all_.erase(at);
    } else {
      ++at;
    }
  }
  return ended;
}

void Allocations::SaidHello(const std::set<std::string>& ids) {
  for (const std::string& id : ids) {
    const auto found = all_.find(id);
    if (found == all_.end()) continue;
    found->second.said_hello = true;
    if (found->second.phase == Phase::kStarting) found->second.phase = Phase::kRunning;
  }
}

std::vector<std::string> Allocations::Late(absl::Duration now, absl::Duration timeout) const {
  std::vector<std::string> late;
  for (const auto& [id, allocation] : all_) {
    if (allocation.phase == Phase::kStarting && now - allocation.began >= timeout) {
      late.push_back(id);
    }
  }
  return late;
}

int Allocations::Count(Phase phase) const {
  return static_cast<int>(std::count_if(all_.begin(), all_.end(), [phase](const auto& entry) {
    return entry.second.phase == phase;
  }));
}

}  // namespace pelab::scale
