#include "server/sched/ready_queue.h"

#include <algorithm>
#include <vector>

namespace pelab::sched {

const store::Requirement* ReadyQueue::Intern(const store::Requirement& requirement) {
  return &*requirements_.insert(requirement).first;
}

void ReadyQueue::Add(const store::ReadyJob& job, absl::Duration waits_since) {
  Remove(job.job_id);
  const store::Requirement* requirement = Intern(job.requirement);
  const Place& place =
      places_[job.job_id] = {.claim = {job.sweep_id, job.ordinal},
                             .others = job.others,
                             .requirement = requirement,
                             .configuration_id = job.configuration_id,
                             .execution = &*executions_.insert(job.execution).first,
                             .waits_since = waits_since};
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
  Sweep& sweep = SweepAt(claim.sweep_id);
  const bool first = sweep.lanes.empty();
  sweep.lanes[requirement].insert({claim.ordinal, job_id});
  if (first) StandInLine(claim.sweep_id, sweep);
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
  if (IsDefault(sweep)) sweeps_.erase(found);
}

ReadyQueue::Sweep& ReadyQueue::SweepAt(std::int64_t sweep_id) {
  const auto [found, added] = sweeps_.try_emplace(sweep_id);
  if (added) found->second.account = &nobody_;
  return found->second;
}

// Whether the sweep is as if nothing had been set.
bool ReadyQueue::IsDefault(const Sweep& sweep) {
  return sweep.priority == 0 && !sweep.paused && sweep.account->name().empty();
}

void ReadyQueue::StandInLine(std::int64_t sweep_id, const Sweep& sweep) {
  if (sweep.paused || sweep.lanes.empty()) return;
  lines_[sweep.priority][sweep.account].insert(sweep_id);
}

void ReadyQueue::LeaveLine(std::int64_t sweep_id, const Sweep& sweep) {
  const auto line = lines_.find(sweep.priority);
  if (line == lines_.end()) return;
  const auto sweeps = line->second.find(sweep.account);
  if (sweeps == line->second.end()) return;
  sweeps->second.erase(sweep_id);
  if (!sweeps->second.empty()) return;
  line->second.erase(sweeps);
  if (line->second.empty()) lines_.erase(line);
}

void ReadyQueue::SetSweepSettings(const store::SweepSettings& settings) {
  Sweep& sweep = SweepAt(settings.sweep_id);
  LeaveLine(settings.sweep_id, sweep);
  sweep.priority = settings.priority;
  sweep.paused = settings.paused;
  sweep.account = &accounts_.Of(settings.owner);
  StandInLine(settings.sweep_id, sweep);
  if (sweep.lanes.empty() && IsDefault(sweep)) sweeps_.erase(settings.sweep_id);
}

bool ReadyQueue::IsPaused(std::int64_t sweep_id) const {
  const auto found = sweeps_.find(sweep_id);
  return found != sweeps_.end() && found->second.paused;
}

Account& ReadyQueue::AccountOf(std::int64_t sweep_id) const {
  const auto found = sweeps_.find(sweep_id);
  return found == sweeps_.end() ? nobody_ : *found->second.account;
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

std::optional<store::ReadyJob> ReadyQueue::Pick(const Fits& fits, const Running& running) {
  for (const auto& [priority, line] : lines_) {
    const Account* best_account = nullptr;
    std::optional<Candidate> best;
    for (const auto& [account, sweeps] : line) {
      if (!account->MayStart()) continue;
      if (best && !account->ComesBefore(*best_account)) continue;
      std::optional<Candidate> first = FirstOf(sweeps, fits, running);
      if (!first) continue;
      best_account = account;
      best = first;
    }
    if (best) return TakeOut(best->second, best->first);
  }
  return std::nullopt;
}

// The next job of these sweeps, which are of one priority and owner.
std::optional<ReadyQueue::Candidate> ReadyQueue::FirstOf(const std::set<std::int64_t>& sweeps,
                                                         const Fits& fits,
                                                         const Running& running) const {
  std::optional<Candidate> best;
  int best_running = 0;
  for (const std::int64_t sweep_id : sweeps) {
    const int now = running(sweep_id);
    if (best && now >= best_running) continue;
    const Entry* first = nullptr;
    for (const auto& [requirement, lane] : sweeps_.at(sweep_id).lanes) {
      if (!fits(*requirement)) continue;
      if (first == nullptr || *lane.begin() < *first) first = &*lane.begin();
    }
    if (first == nullptr) continue;
    best_running = now;
    best = {{sweep_id, first->first}, first->second};
  }
  return best;
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
                      .execution = *place.execution,
                      .waits_since = place.waits_since};
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
  Counts unlimited;
  std::map<const Account*, Counts> limited;
  for (const auto& [priority, line] : lines_) {
    for (const auto& [account, sweeps] : line) {
      const std::size_t left = account->Left();
      if (left == 0) continue;
      Counts& in_lines = left == Account::kUnlimited ? unlimited : limited[account];
      for (const std::int64_t sweep_id : sweeps) {
        for (const auto& [requirement, lane] : sweeps_.at(sweep_id).lanes) {
          in_lines[requirement] += lane.size();
        }
      }
    }
  }
  std::size_t waiting = Sum(unlimited, fits);
  for (const auto& [account, in_lines] : limited) {
    waiting += std::min(Sum(in_lines, fits), account->Left());
  }
  return waiting;
}

// How many different jobs of these lines pass `fits`, at most. A job of several sweeps is in the
// line of each of them.
std::size_t ReadyQueue::Sum(const Counts& in_lines, const Fits& fits) const {
  std::size_t sum = 0;
  for (const auto& [requirement, count] : in_lines) {
    if (fits(*requirement)) sum += std::min(count, counts_.at(requirement));
  }
  return sum;
}

std::vector<store::Requirement> ReadyQueue::RequirementsOf(std::int64_t sweep_id) const {
  std::vector<store::Requirement> found;
  const auto sweep = sweeps_.find(sweep_id);
  if (sweep == sweeps_.end()) return found;
  for (const auto& [requirement, lane] : sweep->second.lanes) found.push_back(*requirement);
  return found;
}

}  // namespace pelab::sched
