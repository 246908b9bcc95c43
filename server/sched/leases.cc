// How long the attempts of a silent worker are kept: heartbeats renew leases, and an attempt whose
// lease has run out is lost. So is an attempt without a report for a long time: its
// daemon is alive, but the part of it that runs trainers may hang. Time in which this process stood
// still, or could store nothing, counts against nobody. The attempts of a worker that has ended, or
// is said to be gone, end at once.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "server/sched/scheduler.h"

namespace pelab::sched {

void Scheduler::Renew(Attempt& attempt) {
  attempt.lease_end = clock_.Monotonic() + options_.lease;
  attempt.pending_error.clear();
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
    if (attempt.pending_error.empty()) {
      const LogScope scope(IdsOf(attempt));
      spdlog::warn("attempt {} of job {} is lost: worker {} was not heard of for {}", id,
                   attempt.job.job_id, NameOf(attempt.worker_id),
                   absl::FormatDuration(options_.lease));
      // The connection may look healthy for a long time, but messages sent over it would be lost
      // too.
      workers_[attempt.worker_id].silent = true;
    }
    End(id, attempt.pending_error.empty() ? state::Event::kLose : attempt.pending_end,
        !attempt.pending_error.empty()
            ? attempt.pending_error
            : absl::StrCat("worker ", NameOf(attempt.worker_id), " did not renew its lease of ",
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

void Scheduler::GiveUpSilent() {
  const auto is_silent = [this](absl::Duration reported) {
    return clock_.Monotonic() - reported >= options_.longest_silence;
  };
  // While nothing can be stored, no event counts.
  if (!storage_works_ || std::none_of(attempts_.begin(), attempts_.end(), [&](const auto& entry) {
        return is_silent(entry.second.reported);
      })) {
    return;
  }
  // Members of a pack may wait for each other.
  std::map<std::pair<std::string, int>, absl::Duration> reported;  // by worker and slot
  for (const auto& [id, attempt] : attempts_) {
    absl::Duration& last =
        reported.try_emplace({attempt.worker_id, attempt.assignment.slot}, attempt.reported)
            .first->second;
    last = std::max(last, attempt.reported);
  }
  std::vector<std::int64_t> silent;
  for (const auto& [id, attempt] : attempts_) {
    const absl::Duration last = reported.at({attempt.worker_id, attempt.assignment.slot});
    if (is_silent(last) && !attempt.ended && !attempt.ending) silent.push_back(id);
  }
  for (const std::int64_t id : silent) {
    const Attempt& attempt = attempts_.at(id);
    std::string why =
        absl::StrCat("worker ", NameOf(attempt.worker_id), " reported nothing about it for ",
                     absl::FormatDuration(options_.longest_silence), " (--attempt-silence)");
    const LogScope scope(IdsOf(attempt));
    spdlog::warn("attempt {} of job {} is lost: {}", id, attempt.job.job_id, why);
    End(id, state::Event::kLose, std::move(why));
  }
}

void Scheduler::StorageWorks(bool works) {
  const absl::Duration now = clock_.Monotonic();
  if (storage_works_ && !works) storage_failed_ = now;
  const absl::Duration outage = storage_works_ ? absl::ZeroDuration() : now - storage_failed_;
  storage_works_ = works;
  if (!works) return;
  for (auto& [id, attempt] : attempts_) attempt.reported = now;
  Prolong(outage);
  WantDispatch();
}

// The messages of that time lie unread in the sockets, and the first tick comes before them.
void Scheduler::StoodStill(absl::Duration time) {
  spdlog::warn("this coordinator stood still for {}: leases are longer by that",
               absl::FormatDuration(time));
  for (auto& [id, attempt] : attempts_) attempt.reported += time;
  Prolong(time);
}

// An attempt that is known to be lost stays lost. The others get back the time of an outage. With a
// whole lease, a fault that comes every few seconds would keep dead workers for ever.
void Scheduler::Prolong(absl::Duration outage) {
  const absl::Duration latest = clock_.Monotonic() + options_.lease;
  for (auto& [id, attempt] : attempts_) {
    if (!attempt.pending_error.empty()) continue;
    attempt.lease_end = std::max(attempt.lease_end, std::min(latest, attempt.lease_end + outage));
  }
}

// Makes a small write. Otherwise, if nobody else writes, nobody would notice that writes work
// again.
void Scheduler::ProbeStorage(const std::string& worker_id) {
  if (clock_.Monotonic() - probed_ < kAfterRefusedWrite) return;
  probed_ = clock_.Monotonic();
  Write(store::WorkerSeen{worker_id, "", /*now: not seen*/ 0});
}

// Workers that are gone ---------------------------------------------------------------------------

void Scheduler::EndGone(std::int64_t attempt_id, const std::string& why) {
  Attempt& attempt = attempts_.at(attempt_id);
  // If the worker has not seen it, nothing is lost.
  if (attempt.started) return End(attempt_id, state::Event::kLose, why);
  attempt.drained = true;  // so that a worker that has come back gets other jobs
  End(attempt_id, state::Event::kPreempt, why);
}

// Ends the attempts of a worker that is gone and holds none any more. Those whose assignment is
// being stored end when that is done (Send). Returns how many were open.
int Scheduler::EndAll(Worker& worker, const std::string& why) {
  worker.gone = why;
  int open = 0;
  for (const std::int64_t id : worker.attempts) {
    Attempt& attempt = attempts_.at(id);
    if (attempt.ending) continue;
    if (attempt.ended) {
      attempt.lease_end = clock_.Monotonic();
    } else {
      EndGone(id, why);
      ++open;
    }
  }
  return open;
}

void Scheduler::Goodbye(const std::string& worker_id, const WorkerLink* link) {
  Worker* worker = Find(worker_id, link);
  if (worker == nullptr) return;
  EndAll(*worker, absl::StrCat("worker ", NameOf(worker_id), " ended"));
  Disconnected(worker_id, link);
}

int Scheduler::WorkerGone(const std::string& name, const std::string& why) {
  int open = 0;
  for (auto& [worker_id, worker] : workers_) {
    if (worker.info.name != name) continue;
    const int lost = EndAll(worker, absl::StrCat("worker ", NameOf(worker_id), " is gone: ", why));
    const LogScope scope({.worker_id = worker_id});
    spdlog::warn("worker {} is gone: {}; {} attempts are lost", NameOf(worker_id), why, lost);
    open += lost;
    const std::shared_ptr<WorkerLink> link = worker.link;
    if (link == nullptr) continue;
    Disconnected(worker_id, link.get());
    link->Close(absl::UnavailableError(absl::StrCat("you are said to be gone: ", why)));
  }
  return open;
}

}  // namespace pelab::sched
