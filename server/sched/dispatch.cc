// Scheduler: giving jobs to slots, and saying why some have to wait.
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/sched/scheduler.h"

namespace pelab::sched {
namespace {

// One slot's share of a batch; the rest is asked for at the next step.
constexpr std::size_t kMaxPlans = 256;
constexpr absl::Duration kAfterRefusedPause = absl::Milliseconds(100);

}  // namespace

// Many events of one moment cause one round.
void Scheduler::WantDispatch() {
  if (dispatch_wanted_) return;
  dispatch_wanted_ = true;
  executor_.Post([this] {
    dispatch_wanted_ = false;
    Dispatch();
  });
}

void Scheduler::Dispatch() {
  if (ready_.empty()) return;
  // A quarantined worker is better than none.
  const bool others_work = OthersWork();
  std::vector<store::Write> writes;
  std::vector<Planned> plans;
  for (auto& [id, worker] : workers_) {
    if (!TakesJobs(worker) || ready_.empty()) continue;
    if (others_work && Quarantined(worker)) continue;
    PlanFor(worker, writes, plans);
    if (plans.size() >= kMaxPlans) {
      WantDispatch();
      break;
    }
  }
  if (plans.empty()) return;
  auto shared = std::make_shared<std::vector<Planned>>(std::move(plans));
  const absl::Status queued = journal_.Append(
      std::move(writes),
      [this, shared](absl::StatusOr<std::vector<store::ApplyResult>> results) {
        executor_.Post([this, shared, results = std::move(results)]() mutable {
          OnPlansStored(std::move(*shared), std::move(results));
        });
      },
      store::Journal::Urgency::kInternal);
  if (!queued.ok()) OnPlansStored(std::move(*shared), queued);
}

void Scheduler::PlanFor(Worker& worker, std::vector<store::Write>& writes,
                        std::vector<Planned>& plans) {
  const auto running = [this](std::int64_t sweep_id) {
    const auto found = running_.find(sweep_id);
    return found == running_.end() ? 0 : found->second;
  };
  for (const Slot& slot : worker.info.slots) {
    if (worker.taken.count(slot.slot) != 0) continue;
    const auto fits = [&](const store::Requirement& requirement) {
      return worker.info.capabilities.WhyNot(slot, requirement).empty();
    };
    const std::optional<store::ReadyJob> job = ready_.Pick(fits, running);
    if (!job) continue;
    worker.taken.insert(slot.slot);
    worker.planned.insert(slot.slot);
    running_[job->sweep_id] += 1;
    plans.push_back({*job, worker.info.worker_id, slot.slot});
    writes.push_back(store::CreateAttempt{.job_id = job->job_id,
                                          .worker_id = worker.info.worker_id,
                                          .slot = slot.slot,
                                          .device = slot.device,
                                          .token = options_.token(),
                                          .now = absl::ToUnixMillis(clock_.Wall())});
  }
}

void Scheduler::OnPlansStored(std::vector<Planned> plans,
                              absl::StatusOr<std::vector<store::ApplyResult>> results) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!results.ok() || !(*results)[i].ok()) {
      PutBack(plans[i]);
      // Not at once: the disk may be full.
      Delay(plans[i].job, clock_.Monotonic() + absl::Seconds(1));
      continue;
    }
    auto& created = std::get<store::AttemptCreated>(*(*results)[i]);
    if (created.assignment) {
      Launch(plans[i], std::move(*created.assignment));
    } else {
      PutBack(plans[i]);
      // Paused while it was being stored; who joined it meanwhile knows more.
      const std::int64_t job_id = plans[i].job.job_id;
      if (created.paused && !ready_.Contains(job_id)) {
        Delay(plans[i].job, clock_.Monotonic() + kAfterRefusedPause);
      }
      WantDispatch();
    }
  }
}

void Scheduler::PutBack(const Planned& plan) {
  Worker& worker = workers_[plan.worker_id];
  worker.planned.erase(plan.slot);
  worker.taken.erase(plan.slot);
  if (--running_[plan.job.sweep_id] <= 0) running_.erase(plan.job.sweep_id);
}

void Scheduler::Launch(const Planned& plan, store::Assignment assignment) {
  // A slice that joined the job while the attempt was being stored may have queued it again.
  ready_.Remove(plan.job.job_id);
  Worker& worker = workers_[plan.worker_id];
  worker.planned.erase(plan.slot);
  worker.taken.insert(plan.slot);
  worker.attempts.insert(assignment.attempt_id);
  const absl::Duration now = clock_.Monotonic();
  const std::int64_t id = assignment.attempt_id;
  Attempt& attempt = attempts_[id] = {.job = plan.job,
                                      .assignment = std::move(assignment),
                                      .worker_id = plan.worker_id,
                                      .began = now,
                                      .lease_end = now + options_.lease,
                                      .drained = !worker.info.drain.empty()};
  // Where the worker is away it is sent when it comes back, or lost with its lease.
  if (worker.link) worker.link->SendAssignment(attempt.assignment);
}

// Why none of the connected slots can run it; empty where one can.
std::string Scheduler::WhyNowhere(const store::Requirement& requirement) const {
  std::string why_not;
  for (const auto& [id, worker] : workers_) {
    if (!TakesJobs(worker)) continue;
    for (const Slot& slot : worker.info.slots) {
      const std::string reason = worker.info.capabilities.WhyNot(slot, requirement);
      if (reason.empty()) return "";
      if (why_not.empty()) why_not = absl::StrCat("worker ", id, ": ", reason);
    }
  }
  return why_not;
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
  std::size_t slots = 0;
  for (const auto& [id, worker] : workers_) {
    if (worker.link && !worker.info.drain.empty()) ++draining;
    if (worker.link && worker.silent) ++silent;
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
  if (connected == 0) return "no worker is connected";
  if (slots == 0) return "no connected worker has a slot";
  // Said even while others of the sweep run: these would wait for ever.
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
  if (some_run) return "";
  return absl::StrCat("the ", slots, " slots of the connected workers are busy with other sweeps");
}

}  // namespace pelab::sched
