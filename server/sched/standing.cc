// The status of workers, for display.
#include <algorithm>

#include "server/sched/scheduler.h"

namespace pelab::sched {

std::vector<WorkerStanding> Scheduler::Workers() const {
  const absl::Duration now = clock_.Monotonic();
  std::vector<WorkerStanding> standings;
  for (const auto& [id, worker] : workers_) {
    WorkerStanding& standing = standings.emplace_back();
    standing.worker_id = id;
    standing.connected = worker.link != nullptr;
    standing.silent = std::max(now - worker.heard, absl::ZeroDuration());
    standing.quarantine_left = std::max(worker.quarantined_until - now, absl::ZeroDuration());
    if (standing.connected) standing.loads = worker.loads;
    for (const std::int64_t attempt_id : worker.attempts) {
      const Attempt& attempt = attempts_.at(attempt_id);
      if (attempt.ended) continue;
      const absl::Duration left = std::max(attempt.lease_end - now, absl::ZeroDuration());
      standing.give_up_left = std::min(standing.give_up_left.value_or(left), left);
      standing.leases.push_back({.attempt_id = attempt_id,
                                 .job_id = attempt.assignment.job_id,
                                 .slot = attempt.assignment.slot,
                                 .age = std::max(options_.lease - left, absl::ZeroDuration()),
                                 .left = left});
    }
  }
  return standings;
}

}  // namespace pelab::sched
