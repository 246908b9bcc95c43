#include "server/sched/ready_queue.h"

#include <algorithm>
#include <vector>

namespace pelab::sched {

const store::Requirement* ReadyQueue::Intern(const store::Requirement& requirement) {
  return &*requirements_.insert(requirement).first;
}

void ReadyQueue::Add(const store::ReadyJob& job) {
  Remove(job.job_id);
  const store::Requirement* requirement = Intern(job.requirement);
  by_priority_[job.priority][job.sweep_id][requirement].insert({job.ordinal, job.job_id});
  places_[job.job_id] = {job.priority, job.sweep_id, job.ordinal, requirement};
}

bool ReadyQueue::Remove(std::int64_t job_id) {
  const auto found = places_.find(job_id);
  if (found == places_.end()) return false;
  const Place place = found->second;
  places_.erase(found);
  auto& sweeps = by_priority_[place.priority];
  auto& lanes = sweeps[place.sweep_id];
  auto& lane = lanes[place.requirement];
  lane.erase({place.ordinal, job_id});
  if (lane.empty()) lanes.erase(place.requirement);
  if (lanes.empty()) sweeps.erase(place.sweep_id);
  if (sweeps.empty()) by_priority_.erase(place.priority);
  return true;
}

std::optional<store::ReadyJob> ReadyQueue::Pick(
    const std::function<bool(const store::Requirement&)>& fits,
    const std::function<int(std::int64_t)>& running) {
  for (const auto& [priority, sweeps] : by_priority_) {
    std::optional<store::ReadyJob> best;
    int best_running = 0;
    for (const auto& [sweep_id, lanes] : sweeps) {
      const int now = running(sweep_id);
      if (best && now >= best_running) continue;
      const Entry* first = nullptr;
      const store::Requirement* requirement = nullptr;
      for (const auto& [lane_requirement, lane] : lanes) {
        if (!fits(*lane_requirement)) continue;
        if (first != nullptr && *first < *lane.begin()) continue;
        first = &*lane.begin();
        requirement = lane_requirement;
      }
      if (first == nullptr) continue;
      best_running = now;
      best = store::ReadyJob{.job_id = first->second,
                             .sweep_id = sweep_id,
                             .ordinal = first->first,
                             .priority = priority,
                             .requirement = *requirement};
    }
    if (best) {
      Remove(best->job_id);
      return best;
    }
  }
  return std::nullopt;
}

std::vector<store::Requirement> ReadyQueue::RequirementsOf(std::int64_t sweep_id) const {
  std::vector<store::Requirement> found;
  for (const auto& [priority, sweeps] : by_priority_) {
    const auto sweep = sweeps.find(sweep_id);
    if (sweep == sweeps.end()) continue;
    for (const auto& [requirement, lane] : sweep->second) found.push_back(*requirement);
  }
  return found;
}

}  // namespace pelab::sched
