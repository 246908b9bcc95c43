// How long a worker that is silent is believed: leases are renewed by heartbeats, and an attempt whose
// lease has run out is lost.
#include <spdlog/spdlog.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/sched/scheduler.h"

namespace pelab::sched {

void Scheduler::Renew(Attempt& attempt) {
  attempt.lease_end = clock_.Monotonic() + options_.lease;
  attempt.why_lost.clear();
}

void Scheduler::Heard(Worker& worker) {
  worker.heard = clock_.Monotonic();
  if (!std::exchange(worker.silent, false)) return;
  WantDispatch();
}

void Scheduler::GiveUpExpired() {
  for (const std::int64_t id : Expired()) {
    const Attempt& attempt = attempts_.at(id);
    if (attempt.ended) {
      Release(id);
      continue;
    }
    if (!storage_works_) {
      ProbeStorage(attempt.worker_id);
      continue;
    }
    if (attempt.why_lost.empty()) {
      spdlog::warn("attempt {} of job {} is lost: worker {} was not heard of for {}", id,
                   attempt.job.job_id, attempt.worker_id, absl::FormatDuration(options_.lease));
      // The connection may look healthy for a long time, but messages sent over it would be lost
      // too.
      workers_[attempt.worker_id].silent = true;
    }
    End(id, state::Event::kLose,
        !attempt.why_lost.empty()
            ? attempt.why_lost
            : absl::StrCat("worker ", attempt.worker_id, " did not renew its lease of ",
                           absl::FormatDuration(options_.lease)));
  }
}

std::vector<std::int64_t> Scheduler::Expired() {
  std::vector<std::int64_t> expired;
  for (const auto& [id, attempt] : attempts_) {
    if (!attempt.ending && attempt.lease_end <= clock_.Monotonic()) expired.push_back(id);
  }
  return expired;
}

void Scheduler::StorageWorks(bool works) {
  storage_works_ = works;
  if (!works) return;
  for (auto& [id, attempt] : attempts_) {
    // An attempt that is known to be lost stays lost.
    if (attempt.why_lost.empty()) attempt.lease_end = clock_.Monotonic() + options_.lease;
  }
  WantDispatch();
}

// Makes a small write. If nobody else writes, it would go unnoticed that writes work again.
void Scheduler::ProbeStorage(const std::string& worker_id) {
  if (clock_.Monotonic() - probed_ < kAfterRefusedWrite) return;
  probed_ = clock_.Monotonic();
  Write(store::WorkerSeen{worker_id, "", /*now: not seen*/ 0});
}

}  // namespace pelab::sched
