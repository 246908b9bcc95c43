// Scheduler: giving jobs to slots, and explaining why some jobs wait.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/sched/scheduler.h"

namespace pelab::sched {
namespace {

// One batch plans at most about this many attempts; the next step plans more.
constexpr std::size_t kMaxPlans = 256;
// So many jobs at most are looked at for a worker that has little time left.
constexpr std::size_t kTriedForTime = 64;
constexpr absl::Duration kAfterRefusedPause = absl::Milliseconds(100);

}  // namespace

// Many events at the same time cause only one round.
void Scheduler::WantDispatch() {
  if (dispatch_wanted_) return;
  dispatch_wanted_ = true;
  executor_.Post([this] {
    dispatch_wanted_ = false;
    Dispatch();
  });
}

void Scheduler::Dispatch() {
  MeasureBudgets();  // also if no job waits, so that a budget is told of when it is spent
  if (ready_.empty()) return;
  Round round{.free = FreeSlots(), .now = absl::ToUnixMillis(clock_.Wall())};
  for (std::size_t i = 0; i < round.free.size() && !ready_.empty(); ++i) {
    PlanFor(i, round);
    if (round.plans.size() >= kMaxPlans) {
      WantDispatch();
      break;
    }
  }
  if (round.plans.empty()) return;
  auto shared = std::make_shared<std::vector<Planned>>(std::move(round.plans));
  const absl::Status queued = journal_.Append(
      std::move(round.writes),
      [this, shared](absl::StatusOr<std::vector<store::ApplyResult>> results) {
        executor_.Post([this, shared, results = std::move(results)]() mutable {
          OnPlansStored(std::move(*shared), std::move(results));
        });
      },
      store::Journal::Urgency::kInternal);
  if (!queued.ok()) OnPlansStored(std::move(*shared), queued);
}

std::vector<Scheduler::FreeSlot> Scheduler::FreeSlots() {
  // If no other worker accepts jobs, quarantined workers are used.
  const bool others_work = OthersWork();
  std::vector<FreeSlot> free;
  for (auto& [id, worker] : workers_) {
    if (!TakesJobs(worker) || (others_work && Quarantined(worker))) continue;
    for (const Slot& slot : worker.info.slots) {
      if (worker.taken.count(slot.slot) == 0) free.push_back({&worker, &slot});
    }
  }
  return free;
}

void Scheduler::PlanFor(std::size_t index, Round& round) {
  const FreeSlot& free = round.free[index];
  const auto running = [this](std::int64_t sweep_id) {
    const auto found = running_.find(sweep_id);
    return found == running_.end() ? 0 : found->second;
  };
  const ReadyQueue::Fits fits = [&](const store::Requirement& requirement) {
    return free.worker->info.capabilities.WhyNot(*free.slot, requirement).empty();
  };
  std::optional<store::ReadyJob> job = PickInTime(free, fits, running);
  if (!job) return;
  const std::size_t group = round.plans.size();
  Plan(free, *std::move(job), group, round);
  for (store::ReadyJob& each : Companions(index, round.plans[group].job, fits, round)) {
    Plan(free, std::move(each), group, round);
  }
}

// The next job for the slot. Jobs whose next epoch would not end before its worker does stay in
// line for other workers.
std::optional<store::ReadyJob> Scheduler::PickInTime(const FreeSlot& free,
                                                     const ReadyQueue::Fits& fits,
                                                     const ReadyQueue::Running& running) {
  std::vector<store::ReadyJob> too_long;
  std::optional<store::ReadyJob> job;
  while (too_long.size() < kTriedForTime && (job = ready_.Pick(fits, running))) {
    if (HasTime(*free.worker, LastEpoch(*job, *free.slot))) break;
    too_long.push_back(*std::exchange(job, std::nullopt));
  }
  for (const store::ReadyJob& each : too_long) ready_.Add(each);
  return job;
}

// The jobs that go to the slot together with `picked`, which is planned and counted already.
std::vector<store::ReadyJob> Scheduler::Companions(std::size_t index, const store::ReadyJob& picked,
                                                   const ReadyQueue::Fits& fits, Round& round) {
  const FreeSlot& free = round.free[index];
  if (free.slot->pack <= 1 || picked.configuration_id == 0 ||
      free.worker->better_alone.count(picked.configuration_id) != 0) {
    return {};
  }
  const std::size_t most = Share(index, picked.requirement, fits, round) - 1;
  return ready_.PickAlike(picked, std::min(most, ready_.AccountOf(picked.sweep_id).Left()));
}

void Scheduler::Plan(const FreeSlot& free, store::ReadyJob job, std::size_t group, Round& round) {
  Worker& worker = *free.worker;
  Account& account = ready_.AccountOf(job.sweep_id);
  Add(worker.taken, free.slot->slot);
  Add(worker.planned, free.slot->slot);
  running_[job.sweep_id] += 1;
  accounts_.Start(account);
  round.writes.push_back(store::CreateAttempt{.job_id = job.job_id,
                                              .worker_id = worker.info.worker_id,
                                              .slot = free.slot->slot,
                                              .device = free.slot->device,
                                              .token = options_.token(),
                                              .principal = account.name(),
                                              .sweep_id = job.sweep_id,
                                              .span_id = options_.span ? options_.span() : "",
                                              .now = round.now});
  round.plans.push_back({std::move(job), worker.info.worker_id, free.slot->slot, group, &account});
}

// How many jobs the slot takes at once, including the one that it has. It leaves some jobs for
// every later free slot that could run them.
std::size_t Scheduler::Share(std::size_t index, const store::Requirement& requirement,
                             const ReadyQueue::Fits& fits, Round& round) const {
  const auto pack = static_cast<std::size_t>(round.free[index].slot->pack);
  const std::size_t jobs = 1 + ready_.Waiting(fits);
  // The jobs fill this slot and all later ones, even if every later slot can run them.
  if ((round.free.size() - index) * pack <= jobs) return pack;
  std::vector<std::size_t>& able = round.able[requirement];
  if (able.empty()) {
    able.resize(round.free.size() + 1);
    for (std::size_t i = round.free.size(); i-- > 0;) {
      const FreeSlot& free = round.free[i];
      const bool can = free.worker->info.capabilities.WhyNot(*free.slot, requirement).empty();
      able[i] = able[i + 1] + (can ? 1 : 0);
    }
  }
  const std::size_t slots = std::max<std::size_t>(able[index], 1);
  return std::min(pack, (jobs + slots - 1) / slots);
}

void Scheduler::OnPlansStored(std::vector<Planned> plans,
                              absl::StatusOr<std::vector<store::ApplyResult>> results) {
  std::vector<std::int64_t> together;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (i > 0 && plans[i].group != plans[i - 1].group) {
      Send(together);
      together.clear();
    }
    if (!results.ok() || !(*results)[i].ok()) {
      OnNotStored(plans[i], results.ok() && !absl::IsUnavailable((*results)[i].status()));
      continue;
    }
    auto& created = std::get<store::AttemptCreated>(*(*results)[i]);
    if (created.assignment) {
      together.push_back(created.assignment->attempt_id);
      Attempt& attempt = Launch(plans[i], *std::move(created.assignment));
      attempt.first_of_pack = attempts_.at(together.front()).job.job_id;
    } else {
      OnRefused(plans[i], created);
    }
  }
  Send(together);
}

// The database failed, for instance because its disk is full, or it refused the assignment
// `itself`. It would refuse it again, so the pauses grow.
void Scheduler::OnNotStored(const Planned& plan, bool itself) {
  PutBack(plan);
  absl::Duration pause = kAfterRefusedWrite;
  if (itself) {
    absl::Duration& next = refused_pauses_[plan.job.job_id];
    pause = next = std::min(std::max(2 * next, kAfterRefusedWrite), kMostAfterRefusedWrite);
  }
  Delay(plan.job, clock_.Monotonic() + pause);
}

void Scheduler::OnRefused(const Planned& plan, const store::AttemptCreated& refused) {
  PutBack(plan);
  refused_pauses_.erase(plan.job.job_id);
  // The job was paused while the attempt was being stored. If it is in the queue again, that entry
  // is newer.
  if (refused.paused && !ready_.Contains(plan.job.job_id)) {
    Delay(plan.job, clock_.Monotonic() + kAfterRefusedPause);
  }
  WantDispatch();
}

void Scheduler::Subtract(Slots& slots, int slot) {
  const auto found = slots.find(slot);
  if (found != slots.end() && --found->second == 0) slots.erase(found);
}

void Scheduler::PutBack(const Planned& plan) {
  Worker& worker = workers_[plan.worker_id];
  Subtract(worker.planned, plan.slot);
  Subtract(worker.taken, plan.slot);
  if (--running_[plan.job.sweep_id] <= 0) running_.erase(plan.job.sweep_id);
  plan.account->Stop();
}

Scheduler::Attempt& Scheduler::Launch(const Planned& plan, store::Assignment assignment) {
  // While the attempt was being stored, a slice of another sweep may have claimed the job and so
  // put it into the queue again.
  ready_.Remove(plan.job.job_id);
  refused_pauses_.erase(plan.job.job_id);
  Worker& worker = workers_[plan.worker_id];
  Subtract(worker.planned, plan.slot);
  worker.attempts.insert(assignment.attempt_id);
  const absl::Duration now = clock_.Monotonic();
  if (options_.on_dispatch) options_.on_dispatch(now - plan.job.waits_since);
  const std::int64_t id = assignment.attempt_id;
  assignment.sweep_id = plan.job.sweep_id;
  return attempts_[id] = {.job = plan.job,
                          .assignment = std::move(assignment),
                          .worker_id = plan.worker_id,
                          .began = now,
                          .lease_end = now + options_.lease,
                          .reported = now,
                          .drained = worker.info.drain != v1::Drain::RESUME,
                          .account = plan.account};
}

// Ends an attempt that its worker was to get and cannot run: the worker has come back with other
// programs or slots since the attempt was planned. Returns whether that is so.
bool Scheduler::TakeBackFromUnable(std::int64_t attempt_id) {
  Attempt& attempt = attempts_.at(attempt_id);
  const WorkerInfo& worker = workers_[attempt.worker_id].info;
  const auto slot = std::find_if(worker.slots.begin(), worker.slots.end(), [&](const Slot& one) {
    return one.slot == attempt.assignment.slot;
  });
  const std::string why = slot == worker.slots.end()
                              ? absl::StrCat("it has no slot ", attempt.assignment.slot)
                              : worker.capabilities.WhyNot(*slot, attempt.job.requirement);
  if (why.empty()) return false;
  attempt.drained = true;  // so that the worker goes on getting other jobs
  End(attempt_id, state::Event::kPreempt,
      absl::StrCat("worker ", NameOf(attempt.worker_id), " came back and cannot run it: ", why));
  return true;
}

// Sends attempts to their worker. If the worker is not connected, they are sent when it comes back,
// or lost when their leases run out. If it is gone, they end now.
void Scheduler::Send(std::vector<std::int64_t> together) {
  if (together.empty()) return;
  const Worker& worker = workers_[attempts_.at(together.front()).worker_id];
  const std::shared_ptr<WorkerLink>& link = worker.link;
  if (!worker.gone.empty()) {
    for (const std::int64_t id : together) EndGone(id, worker.gone);
    return;
  }
  if (!link) return;
  std::erase_if(together, [this](std::int64_t id) { return TakeBackFromUnable(id); });
  if (together.empty()) return;
  if (together.size() == 1) return link->SendAssignment(attempts_.at(together.front()).assignment);
  std::vector<store::Assignment> assignments;
  assignments.reserve(together.size());
  for (const std::int64_t id : together) assignments.push_back(attempts_.at(id).assignment);
  link->SendPack(assignments);
}

// Why no connected slot can run a job with this requirement; empty if a slot can.
std::string Scheduler::WhyNowhere(const store::Requirement& requirement) const {
  std::string why_not;
  for (const auto& [id, worker] : workers_) {
    if (!TakesJobs(worker)) continue;
    for (const Slot& slot : worker.info.slots) {
      const std::string reason = worker.info.capabilities.WhyNot(slot, requirement);
      if (reason.empty()) return "";
      if (why_not.empty()) why_not = absl::StrCat("worker ", NameOf(id), ": ", reason);
    }
  }
  return why_not;
}

// Names a worker that is free and ends too soon for jobs with these requirements; empty if there is
// none.
std::string Scheduler::WhyNoTime(const std::vector<store::Requirement>& requirements) const {
  for (const auto& [id, worker] : workers_) {
    if (!TakesJobs(worker) || Quarantined(worker)) continue;
    if (worker.time_over == absl::InfiniteDuration()) continue;
    const Capabilities& capabilities = worker.info.capabilities;
    for (const Slot& slot : worker.info.slots) {
      const auto can_run = [&](const store::Requirement& requirement) {
        return capabilities.WhyNot(slot, requirement).empty();
      };
      if (worker.taken.count(slot.slot) != 0) continue;
      if (std::none_of(requirements.begin(), requirements.end(), can_run)) continue;
      return absl::StrCat("worker ", NameOf(id), " is free, but has no time left for three epochs ",
                          "of these jobs (--time-limit)");
    }
  }
  return "";
}

std::string Scheduler::WaitingReason(std::int64_t sweep_id) const {
  const bool some_run = running_.count(sweep_id) != 0;
  const std::vector<store::Requirement> requirements = ready_.RequirementsOf(sweep_id);
  if (ready_.IsPaused(sweep_id)) return "paused";
  if (requirements.empty()) {
    if (some_run) return "";
    for (const auto& [when, job] : delayed_) {
      if (job.sweep_id == sweep_id) return "failed attempts wait for the end of their back-off";
    }
    return "";
  }
  int connected = 0;
  int draining = 0;
  int silent = 0;
  int ending = 0;
  std::size_t slots = 0;
  for (const auto& [id, worker] : workers_) {
    if (worker.link && worker.info.drain != v1::Drain::RESUME) ++draining;
    if (worker.link && worker.silent) ++silent;
    if (worker.link && !HasTime(worker, absl::ZeroDuration())) ++ending;
    if (!TakesJobs(worker)) continue;
    connected += 1;
    slots += worker.info.slots.size();
  }
  if (slots == 0 && some_run) return "";
  if (connected == 0 && draining > 0) return "every connected worker drains";
  if (connected == 0 && silent > 0) {
    return absl::StrCat("no connected worker was heard of for ",
                        absl::FormatDuration(options_.lease));
  }
  if (connected == 0 && ending > 0) return "every connected worker is near its time limit";
  if (connected == 0) return "no worker is connected";
  if (slots == 0) return "no connected worker has a slot";
  // Reported even while other jobs of the sweep run: a job that no slot can run would wait forever.
  std::size_t nowhere = 0;
  std::string why_not;
  for (const store::Requirement& requirement : requirements) {
    const std::string reason = WhyNowhere(requirement);
    if (reason.empty()) continue;
    nowhere += 1;
    if (why_not.empty()) why_not = reason;
  }
  if (nowhere != 0) {
    const bool all = nowhere == requirements.size() && !some_run;
    return absl::StrCat("no connected worker can run ", all ? "it" : "some of its jobs", "; ",
                        why_not);
  }
  if (std::string held = ready_.AccountOf(sweep_id).WhyHeld(); !held.empty()) return held;
  if (some_run) return "";
  if (std::string no_time = WhyNoTime(requirements); !no_time.empty()) return no_time;
  if (slots == 1) return "the only connected slot is busy with another sweep";
  return absl::StrCat("the ", slots, " slots of the connected workers are busy with other sweeps");
}

}  // namespace pelab::sched
