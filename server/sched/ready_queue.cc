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
  const Place& place =
      places_[job.job_id] = {.claim = {job.sweep_id, job.ordinal},
                             .others = job.others,
                             .requirement = requirement,
                             .configuration_id = job.configuration_id,
                             .execution = &*executions_.insert(job.execution).first};
  counts_[requirement] += 1;
  Enter(place.claim, job.job_id, requirement);
  for (const store::Claim& claim : place.others) Enter(claim, job.job_id, requirement);
}

void ReadyQueue::EraseAt(Places::iterator place) {
  const auto count = counts_.find(place->second.requirement);
  if (--count->second == 0) counts_.erase(count);
  places_.erase(place);
}

bool ReadyQueue::Remove(std::int64_t job_id) {
  const auto found = places_.find(job_id);
  if (found == places_.end()) return false;
  const Place place = std::move(found->second);
  EraseAt(found);
  Leave(place.claim, job_id, place.requirement);
  for (const store::Claim& claim : place.others) Leave(claim, job_id, place.requirement);
  return true;
}

void ReadyQueue::Enter(const store::Claim& claim, std::int64_t job_id,
                       const store::Requirement* requirement) {
  Sweep& sweep = sweeps_[claim.sweep_id];
  if (sweep.lanes.empty() && !sweep.paused) lines_[sweep.priority].insert(claim.sweep_id);
  sweep.lanes[requirement].insert({claim.ordinal, job_id});
}

void ReadyQueue::Leave(const store::Claim& claim, std::int64_t job_id,
                       const store::Requirement* requirement) {
  const auto found = sweeps_.find(claim.sweep_id);
  if (found == sweeps_.end()) return;
  Sweep& sweep = found->second;
  const auto lane = sweep.lanes.find(requirement);
  if (lane == sweep.lanes.end()) return;
  lane->second.erase({claim.ordinal, job_id});
  if (!lane->second.empty()) return;
  sweep.lanes.erase(lane);
  if (!sweep.lanes.empty()) return;
  LeaveLine(claim.sweep_id, sweep);
  if (sweep.priority == 0 && !sweep.paused) sweeps_.erase(found);
}

void ReadyQueue::StandInLine(std::int64_t sweep_id, const Sweep& sweep) {
  if (!sweep.paused && !sweep.lanes.empty()) lines_[sweep.priority].insert(sweep_id);
}

void ReadyQueue::LeaveLine(std::int64_t sweep_id, const Sweep& sweep) {
  const auto line = lines_.find(sweep.priority);
  if (line == lines_.end()) return;
  line->second.erase(sweep_id);
  if (line->second.empty()) lines_.erase(line);
}

void ReadyQueue::SetSweepSettings(const store::SweepSettings& settings) {
  Sweep& sweep = sweeps_[settings.sweep_id];
  LeaveLine(settings.sweep_id, sweep);
  sweep.priority = settings.priority;
  sweep.paused = settings.paused;
  StandInLine(settings.sweep_id, sweep);
  if (sweep.lanes.empty() && sweep.priority == 0 && !sweep.paused) {
    sweeps_.erase(settings.sweep_id);
  }
}

bool ReadyQueue::IsPaused(std::int64_t sweep_id) const {
  const auto found = sweeps_.find(sweep_id);
  return found != sweeps_.end() && found->second.paused;
}

void ReadyQueue::Forget(std::int64_t sweep_id) {
  const auto found = sweeps_.find(sweep_id);
  if (found == sweeps_.end()) return;
  LeaveLine(sweep_id, found->second);
  const Lanes lanes = std::move(found->second.lanes);
  sweeps_.erase(found);
  for (const auto& [requirement, lane] : lanes) {
    for (const auto& [ordinal, job_id] : lane) {
      const auto place = places_.find(job_id);
      std::vector<store::Claim>& others = place->second.others;
      if (place->second.claim.sweep_id != sweep_id) {
        std::erase(others, store::Claim{sweep_id, ordinal});
      } else if (others.empty()) {
        EraseAt(place);
      } else {
        place->second.claim = others.front();
        others.erase(others.begin());
      }
    }
  }
}

std::optional<store::ReadyJob> ReadyQueue::Pick(
    const std::function<bool(const store::Requirement&)>& fits,
    const std::function<int(std::int64_t)>& running) {
  for (const auto& [priority, line] : lines_) {
    std::int64_t best_job = 0;
    store::Claim best;
    int best_running = 0;
    for (const std::int64_t sweep_id : line) {
      const int now = running(sweep_id);
      if (best_job != 0 && now >= best_running) continue;
      const Entry* first = nullptr;
      for (const auto& [requirement, lane] : sweeps_.at(sweep_id).lanes) {
        if (!fits(*requirement)) continue;
        if (first == nullptr || *lane.begin() < *first) first = &*lane.begin();
      }
      if (first == nullptr) continue;
      best_running = now;
      best_job = first->second;
      best = {sweep_id, first->first};
    }
    if (best_job != 0) return TakeOut(best_job, best);
  }
  return std::nullopt;
}

// Removes the job for the sweep of `claim`, which is one of the job's claims.
store::ReadyJob ReadyQueue::TakeOut(std::int64_t job_id, const store::Claim& claim) {
  const Place& place = places_.at(job_id);
  store::ReadyJob job{.job_id = job_id,
                      .sweep_id = claim.sweep_id,
                      .ordinal = claim.ordinal,
                      .others = place.others,
                      .requirement = *place.requirement,
                      .configuration_id = place.configuration_id,
                      .execution = *place.execution};
  if (place.claim != claim) {
    std::erase(job.others, claim);
    job.others.push_back(place.claim);
  }
  Remove(job_id);
  return job;
}

std::vector<store::ReadyJob> ReadyQueue::PickAlike(const store::ReadyJob& picked,
                                                   std::size_t most) {
  std::vector<store::ReadyJob> alike;
  if (picked.configuration_id == 0) return alike;
  const store::Requirement* requirement = Intern(picked.requirement);
  while (alike.size() < most) {
    const auto sweep = sweeps_.find(picked.sweep_id);
    if (sweep == sweeps_.end()) break;
    const auto lane = sweep->second.lanes.find(requirement);
    if (lane == sweep->second.lanes.end()) break;
    const auto next = lane->second.upper_bound({picked.ordinal, picked.job_id});
    if (next == lane->second.end()) break;
    const auto [ordinal, job_id] = *next;
    const Place& place = places_.at(job_id);
    if (place.configuration_id != picked.configuration_id) break;
    if (*place.execution != picked.execution) break;
    alike.push_back(TakeOut(job_id, {picked.sweep_id, ordinal}));
  }
  return alike;
}

std::size_t ReadyQueue::Waiting(const Fits& fits) const {
  // A job of several sweeps is in the queue of each of them.
  std::map<const store::Requirement*, std::size_t> in_lines;
  for (const auto& [priority, line] : lines_) {
    for (const std::int64_t sweep_id : line) {
      for (const auto& [requirement, lane] : sweeps_.at(sweep_id).lanes) {
        in_lines[requirement] += lane.size();
      }
    }
  }
  std::size_t waiting = 0;
  for (const auto& [requirement, count] : in_lines) {
    if (fits(*requirement)) waiting += std::min(count, counts_.at(requirement));
  }
  return waiting;
}

std::vector<store::Requirement> ReadyQueue::RequirementsOf(std::int64_t sweep_id) const {
  std::vector<store::Requirement> found;
  const auto sweep = sweeps_.find(sweep_id);
  if (sweep == sweeps_.end()) return found;
  for (const auto& [requirement, lane] : sweep->second.lanes) found.push_back(*requirement);
  return found;
}

}  // namespace pelab::sched
