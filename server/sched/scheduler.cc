#include "server/sched/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace pelab::sched {
namespace {

constexpr std::size_t kRememberedAttempts = 10'000;
constexpr absl::Duration kSeenEvery = absl::Seconds(30);
constexpr std::size_t kMostLastEpochs = 100'000;

std::int64_t NowMs(const Clock& clock) { return absl::ToUnixMillis(clock.Wall()); }

// Whether `known` has the value, or still has room for it.
template <typename Value>
bool Admit(const Value& value, std::size_t most, std::set<Value>& known) {
  if (known.size() < most) known.insert(value);
  return known.count(value) != 0;
}

}  // namespace

Scheduler::Scheduler(const Clock& clock, Executor& executor, store::Journal& journal,
                     SchedulerOptions options)
    : clock_(clock), executor_(executor), journal_(journal), options_(std::move(options)) {}

void Scheduler::Start() { ScheduleTick(); }

void Scheduler::ScheduleTick() {
  const absl::Duration interval =
      std::clamp(options_.lease / 20, absl::Milliseconds(20), absl::Milliseconds(250));
  const absl::Duration due = clock_.Monotonic() + interval;
  executor_.PostAt(due, [this, due] {
    const absl::Duration late = clock_.Monotonic() - due;
    // Workers send several heartbeats in a lease, so a shorter pause costs nobody an attempt.
    if (late > options_.lease / 4) StoodStill(late);
    Tick();
    ScheduleTick();
  });
}

void Scheduler::Tick() {
  const absl::Duration now = clock_.Monotonic();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const store::ReadyJob job = std::move(delayed_.begin()->second);
    DropDelayed(job.job_id);
    // If the job was added again meanwhile, that entry is newer.
    if (!ready_.Contains(job.job_id)) ready_.Add(job, now);
  }
  GiveUpExpired();
  GiveUpSilent();
  WantDispatch();
}

void Scheduler::AddReady(const store::ReadyJob& job) { AddReady(job, NowMs(clock_)); }

void Scheduler::AddReady(const store::ReadyJob& job, std::int64_t now_ms) {
  const std::int64_t wait = job.not_before - now_ms;
  if (job.not_before == 0 || wait <= 0) {
    DropDelayed(job.job_id);
    ready_.Add(job, clock_.Monotonic());
    WantDispatch();
    return;
  }
  // Wait at most a minute, whatever the wall clock says.
  Delay(job, clock_.Monotonic() + absl::Milliseconds(std::min<std::int64_t>(wait, 60'000)));
}

void Scheduler::Delay(const store::ReadyJob& job, absl::Duration until) {
  DropDelayed(job.job_id);
  delayed_jobs_[job.job_id] = delayed_.emplace(until, job);
}

void Scheduler::DropDelayed(std::int64_t job_id) {
  const auto found = delayed_jobs_.find(job_id);
  if (found == delayed_jobs_.end()) return;
  delayed_.erase(found->second);
  delayed_jobs_.erase(found);
}

void Scheduler::RecoverOpen(const store::OpenAttempt& open) {
  const absl::Duration now = clock_.Monotonic();
  const std::int64_t id = open.assignment.attempt_id;
  Account& account = accounts_.Of(open.principal);
  const absl::Duration took = clock_.Wall() - absl::FromUnixMillis(open.started_at);
  attempts_[id] = {.job = open.job,
                   .assignment = open.assignment,
                   .worker_id = open.worker_id,
                   .began = now - std::max(took, absl::ZeroDuration()),
                   .lease_end = now + options_.lease,
                   .reported = now,
                   .started = open.started,
                   .cancelled = open.cancelled,
                   .first_of_pack = open.job.job_id,
                   .account = &account};
  attempts_[id].assignment.sweep_id = open.job.sweep_id;
  Worker& worker = workers_[open.worker_id];
  Add(worker.taken, open.assignment.slot);
  SetName(worker, open.worker_name);  // in case it does not come back
  worker.attempts.insert(id);
  worker.heard = now;
  running_[open.job.sweep_id] += 1;
  accounts_.Start(account);
}

Scheduler::Worker* Scheduler::Find(const std::string& worker_id, const WorkerLink* link) {
  const auto found = workers_.find(worker_id);
  if (found == workers_.end() || found->second.link.get() != link) return nullptr;
  return &found->second;
}

void Scheduler::Connected(WorkerInfo info, std::shared_ptr<WorkerLink> link,
                          const std::vector<store::Held>& held) {
  const std::string worker_id = info.worker_id;
  Worker& worker = workers_[worker_id];
  if (worker.link) worker.link->Close(absl::AbortedError("this worker has connected again"));
  SetName(worker, info.name);
  worker.info = std::move(info);
  worker.link = std::move(link);
  worker.taken = worker.planned;
  worker.better_alone.clear();
  worker.leaving = false;
  worker.silent = false;
  worker.gone.clear();
  worker.heard = clock_.Monotonic();
  worker.time_over = worker.heard + worker.info.time_left;
  worker.seen_written = worker.heard;
  if (worker.info.drain != v1::Drain::RESUME) Drain(worker_id, worker.info.drain);
  std::set<std::int64_t> held_ids;
  std::set<std::int64_t> left_over;
  for (const store::Held& h : held) {
    held_ids.insert(h.attempt_id);
    if (h.slot < 0) left_over.insert(h.attempt_id);
  }
  std::vector<std::int64_t> released;
  for (const std::int64_t id : worker.attempts) {
    Attempt& attempt = attempts_.at(id);
    const bool holds = held_ids.count(id) != 0;
    Add(worker.taken, attempt.assignment.slot);
    if (attempt.ended) {
      // The Welcome has already told the worker to drop the attempt.
      released.push_back(id);
      continue;
    }
    Renew(attempt);
    if (holds) {
      attempt.started = true;
      attempt.left_over = left_over.count(id) != 0;
      if (attempt.cancelled)
        worker.link->SendStop(id, attempt.assignment.token, StopReason::kCancelled);
    } else if (attempt.ending) {
      continue;
    } else if (attempt.started || attempt.cancelled) {
      End(id, state::Event::kLose,
          absl::StrCat("worker ", NameOf(worker_id), " came back without it"));
    } else if (!TakeBackFromUnable(id)) {
      worker.link->SendAssignment(attempt.assignment);
    }
  }
  for (const std::int64_t id : released) Release(id);
  WantDispatch();
}

void Scheduler::Heartbeat(const std::string& worker_id, const WorkerLink* link,
                          const std::vector<store::Held>& held) {
  Worker* worker = Find(worker_id, link);
  if (worker == nullptr) return;
  Heard(*worker);
  std::set<std::int64_t> held_ids;
  for (const store::Held& h : held) {
    if (worker->attempts.count(h.attempt_id) != 0) held_ids.insert(h.attempt_id);
    const auto found = attempts_.find(h.attempt_id);
    if (found == attempts_.end()) {
      if (given_up_.count(h.attempt_id) != 0) {
        worker->link->SendStop(h.attempt_id, h.token, StopReason::kSuperseded);
      }
      continue;
    }
    if (found->second.worker_id != worker_id || found->second.assignment.token != h.token) continue;
    Renew(found->second);
    found->second.started = true;
  }
  std::vector<std::int64_t> let_go;
  for (const std::int64_t id : worker->attempts) {
    if (attempts_.at(id).ended && held_ids.count(id) == 0) let_go.push_back(id);
  }
  for (const std::int64_t id : let_go) Release(id);
  if (clock_.Monotonic() - worker->seen_written >= kSeenEvery) Seen(*worker, "");
}

void Scheduler::SetLoads(const std::string& worker_id, const WorkerLink* link,
                         std::vector<DeviceLoad> loads, std::vector<GpuErrors> errors) {
  Worker* worker = Find(worker_id, link);
  if (worker == nullptr) return;
  std::erase_if(loads, [worker](const DeviceLoad& load) {
    return !Admit(load.device, kSeriesOfWorker, worker->devices);
  });
  std::erase_if(errors, [worker](const GpuErrors& error) {
    return !Admit(std::make_pair(error.device, error.xid), kSeriesOfWorker, worker->error_kinds);
  });
  worker->loads = std::move(loads);
  worker->errors = std::move(errors);
}

void Scheduler::Disconnected(const std::string& worker_id, const WorkerLink* link) {
  Worker* worker = Find(worker_id, link);
  if (worker == nullptr) return;
  worker->link = nullptr;
  Seen(*worker, "offline");
}

void Scheduler::Stored(const store::EventStored& event) {
  const auto found = attempts_.find(event.attempt_id);
  if (event.foreign || found == attempts_.end()) return;
  // A worker that is gone has said this before: it does not put off the end that was decided since.
  if (Worker& worker = workers_[found->second.worker_id]; worker.gone.empty()) {
    Renew(found->second);
    Heard(worker);
  }
  if (event.advanced) found->second.reported = clock_.Monotonic();
  found->second.started = true;
  if (event.epoch_seconds > 0) KeepEpoch(found->second, event.epoch_seconds);
  if (event.better_alone) {
    workers_[found->second.worker_id].better_alone.insert(found->second.job.configuration_id);
  }
  if (event.change) {
    OnEnded(event.attempt_id, *event.change);
  } else if (found->second.ended && event.status == store::EventStored::kSuperseded) {
    Release(event.attempt_id);
  }
}

void Scheduler::Expanded(const store::SliceStored& slice) {
  for (const store::SweepSettings& settings : slice.sweep_settings)
    ready_.SetSweepSettings(settings);
  for (const store::ReadyJob& job : slice.ready) AddReady(job);
  for (const std::int64_t id : slice.superseded) {
    const auto found = attempts_.find(id);
    if (found == attempts_.end()) continue;
    const Worker& worker = workers_[found->second.worker_id];
    // The exact amount is stored but not told here.
    found->second.account->Charge(GpuSeconds(worker, found->second, clock_.Monotonic()));
    found->second.ended = true;
    TellEnded(found->second, state::Outcome::kSuperseded, state::ErrorKind::kNone);
    if (worker.link) {
      worker.link->SendStop(id, found->second.assignment.token, StopReason::kSuperseded);
    }
  }
}

void Scheduler::Cancelled(const store::Cancelled& cancelled) {
  for (const std::int64_t job_id : cancelled.jobs) {
    ready_.Remove(job_id);
    DropDelayed(job_id);
    refused_pauses_.erase(job_id);
  }
  if (cancelled.sweep_id != 0 && cancelled.more) {
    ready_.SetSweepSettings({.sweep_id = cancelled.sweep_id, .paused = true});
  } else if (cancelled.sweep_id != 0) {
    ready_.Forget(cancelled.sweep_id);
  }
  for (const store::ReadyJob& job : cancelled.ready) AddReady(job);
  for (const std::int64_t id : cancelled.attempts) {
    const auto found = attempts_.find(id);
    if (found == attempts_.end()) continue;
    found->second.cancelled = true;
    const Worker& worker = workers_[found->second.worker_id];
    if (worker.link) {
      worker.link->SendStop(id, found->second.assignment.token, StopReason::kCancelled);
    }
  }
}

void Scheduler::SetSweepSettings(const store::SweepSettings& settings) {
  ready_.SetSweepSettings(settings);
  WantDispatch();
}

void Scheduler::Drain(const std::string& worker_id, v1::Drain::Mode drain) {
  const auto found = workers_.find(worker_id);
  if (found == workers_.end()) return;  // the worker is told after its next hello
  Worker& worker = found->second;
  worker.info.drain = drain;
  if (drain == v1::Drain::RESUME) worker.leaving = false;
  if (worker.link) worker.link->SendDrain(drain);
  // The worker refuses attempts that it has not started. It still does so if the drain is lifted
  // before its refusal arrives.
  for (auto& [id, attempt] : attempts_) {
    if (drain == v1::Drain::RESUME || attempt.worker_id != worker_id) continue;
    attempt.drained = attempt.drained || drain != v1::Drain::FINISH || !attempt.started;
  }
  WantDispatch();
}

// End of attempts -------------------------------------------------------------------------------

void Scheduler::End(std::int64_t attempt_id, state::Event event, std::string error) {
  Attempt& ended = attempts_.at(attempt_id);
  ended.ending = true;
  ended.pending_error = error;
  ended.pending_end = event;
  ended.lease_end = clock_.Monotonic();
  const auto done = [this, attempt_id](absl::StatusOr<std::vector<store::ApplyResult>> results) {
    executor_.Post([this, attempt_id, results = std::move(results)] {
      const auto found = attempts_.find(attempt_id);
      if (found == attempts_.end()) return;
      if (!results.ok() || !results->front().ok()) {
        // Nothing was stored. The lease will be found expired again, unless the worker is heard
        // from meanwhile.
        found->second.ending = false;
        found->second.lease_end =
            std::max(found->second.lease_end, clock_.Monotonic() + kAfterRefusedWrite);
        return;
      }
      const auto* stored = std::get_if<store::EventStored>(&*results->front());
      if (stored != nullptr && stored->change) {
        OnEnded(attempt_id, *stored->change);
      } else {
        Release(attempt_id);
      }
    });
  };
  const absl::Status queued =
      journal_.Append({store::EndAttempt{attempt_id, event, std::move(error), NowMs(clock_)}}, done,
                      store::Journal::Urgency::kInternal);
  if (!queued.ok()) ended.ending = false;
}

LogIds Scheduler::IdsOf(const Attempt& attempt) {
  return {.trace_id = attempt.assignment.trace.trace_id,
          .span_id = attempt.assignment.trace.span_id,
          .principal = attempt.account->name(),
          .sweep_id = attempt.job.sweep_id,
          .job_id = attempt.job.job_id,
          .attempt_id = attempt.assignment.attempt_id,
          .worker_id = attempt.worker_id};
}

void Scheduler::TellEnded(const Attempt& attempt, state::Outcome outcome,
                          state::ErrorKind error) const {
  if (!options_.on_ended) return;
  const bool recovered = attempt.job.waits_since == absl::ZeroDuration();
  options_.on_ended(
      {.assignment = attempt.assignment,
       .sweep_id = attempt.job.sweep_id,
       .worker_id = attempt.worker_id,
       .worker = NameOf(attempt.worker_id),
       .outcome = outcome,
       .error = error,
       .waited = recovered ? absl::ZeroDuration() : attempt.began - attempt.job.waits_since});
}

void Scheduler::OnEnded(std::int64_t attempt_id, const store::JobChange& change) {
  const auto found = attempts_.find(attempt_id);
  if (found == attempts_.end()) return;
  const Attempt& attempt = found->second;
  attempt.account->Charge(change.gpu_seconds);
  TellEnded(attempt, change.outcome, change.error);
  if (const auto worker = workers_.find(attempt.worker_id); worker != workers_.end()) {
    CountFailure(worker->second, attempt, change);
    // A preempted attempt without an error was given back by a worker that is ending. If the
    // trainer stopped by itself, the change has an error, and the worker stays in use.
    if (change.outcome == state::Outcome::kPreempted && change.error == state::ErrorKind::kNone &&
        !attempt.left_over && !attempt.drained) {
      worker->second.leaving = true;
    }
    if (change.outcome == state::Outcome::kLost) {
      given_up_.insert(attempt_id);
      given_up_order_.push_back(attempt_id);
      if (worker->second.link) {
        worker->second.link->SendStop(attempt_id, attempt.assignment.token,
                                      StopReason::kSuperseded);
      }
    }
  }
  while (given_up_order_.size() > kRememberedAttempts) {
    given_up_.erase(given_up_order_.front());
    given_up_order_.pop_front();
  }
  Release(attempt_id);
  // The clock may have been set since the back-off was stored, so it is not read again.
  if (change.ready) AddReady(*change.ready, change.now);
}

void Scheduler::Release(std::int64_t attempt_id) {
  const auto found = attempts_.find(attempt_id);
  if (found == attempts_.end()) return;
  const auto worker = workers_.find(found->second.worker_id);
  if (worker != workers_.end()) {
    Subtract(worker->second.taken, found->second.assignment.slot);
    worker->second.attempts.erase(attempt_id);
  }
  if (--running_[found->second.job.sweep_id] <= 0) running_.erase(found->second.job.sweep_id);
  found->second.account->Stop();
  attempts_.erase(found);
  WantDispatch();
}

void Scheduler::CountFailure(Worker& worker, const Attempt& attempt,
                             const store::JobChange& change) {
  if (change.outcome == state::Outcome::kSucceeded) {
    worker.fast_failures.clear();
    return;
  }
  // Errors that the spec itself causes say nothing about the worker.
  const bool workers_fault =
      change.outcome == state::Outcome::kFailed && state::IsRetryable(change.error);
  if (!workers_fault || clock_.Monotonic() - attempt.began > options_.fast_failure) return;
  worker.fast_failures.insert(attempt.first_of_pack);
  if (static_cast<int>(worker.fast_failures.size()) < options_.quarantine_after) return;
  worker.fast_failures.clear();
  const bool again = Quarantined(worker);
  worker.quarantined_until = clock_.Monotonic() + options_.quarantine;
  const LogScope scope(IdsOf(attempt));
  spdlog::warn("worker {} is quarantined for {}: {} different jobs failed on it at once",
               NameOf(attempt.worker_id), absl::FormatDuration(options_.quarantine),
               options_.quarantine_after);
  if (again || !options_.on_quarantine) return;
  options_.on_quarantine(attempt.worker_id, NameOf(attempt.worker_id), options_.quarantine);
}

bool Scheduler::Quarantined(const Worker& worker) const {
  return clock_.Monotonic() < worker.quarantined_until;
}

bool Scheduler::TakesJobs(const Worker& worker) const {
  return worker.link != nullptr && !worker.leaving && !worker.silent &&
         worker.info.drain == v1::Drain::RESUME && HasTime(worker, absl::ZeroDuration());
}

bool Scheduler::HasTime(const Worker& worker, absl::Duration epoch) const {
  const absl::Duration gives_back = worker.time_over - std::max(worker.info.margin, 2 * epoch);
  return clock_.Monotonic() + epoch < gives_back;
}

absl::Duration Scheduler::LastEpoch(const store::ReadyJob& job, const Slot& slot) const {
  const auto found = last_epochs_.find({job.configuration_id, slot.device_kind});
  return found == last_epochs_.end() ? absl::ZeroDuration() : found->second;
}

void Scheduler::KeepEpoch(const Attempt& attempt, double seconds) {
  const std::vector<Slot>& slots = workers_[attempt.worker_id].info.slots;
  const auto slot = std::find_if(slots.begin(), slots.end(), [&](const Slot& one) {
    return one.slot == attempt.assignment.slot;
  });
  if (slot == slots.end() || attempt.job.configuration_id == 0) return;
  // A sweep can have a million configurations. What is forgotten is measured again.
  if (last_epochs_.size() >= kMostLastEpochs) last_epochs_.clear();
  last_epochs_[{attempt.job.configuration_id, slot->device_kind}] = absl::Seconds(seconds);
}

bool Scheduler::OthersWork() const {
  return std::any_of(workers_.begin(), workers_.end(), [this](const auto& entry) {
    return TakesJobs(entry.second) && !Quarantined(entry.second);
  });
}

void Scheduler::Seen(Worker& worker, const std::string& state) {
  worker.seen_written = clock_.Monotonic();
  // This write may come long after the worker was last heard from, as when a lease runs out.
  const absl::Duration silent = std::max(worker.seen_written - worker.heard, absl::ZeroDuration());
  Write(store::WorkerSeen{worker.info.worker_id, state,
                          NowMs(clock_) - absl::ToInt64Milliseconds(silent)});
}

void Scheduler::Write(store::Write write) {
  (void)journal_.Append(
      {std::move(write)}, [](const auto&) {}, store::Journal::Urgency::kInternal);
}

}  // namespace pelab::sched
