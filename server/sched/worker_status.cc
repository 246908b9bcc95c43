// The status and the names of workers, for display.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/sched/scheduler.h"

namespace pelab::sched {
namespace {

// If two workers share a name, messages add this many characters of their ids.
constexpr std::size_t kIdCharacters = 8;

}  // namespace

// The name of a worker in messages: "gpu1", or "gpu1 (3acd1d38)" if several have this name. A
// worker without a name is called by its id.
std::string Scheduler::NameOf(const std::string& worker_id) const {
  const auto found = workers_.find(worker_id);
  if (found == workers_.end() || found->second.info.name.empty()) return worker_id;
  const std::string& name = found->second.info.name;
  return named_.at(name) == 1 ? name
                              : absl::StrCat(name, " (", worker_id.substr(0, kIdCharacters), ")");
}

void Scheduler::SetName(Worker& worker, const std::string& name) {
  if (worker.info.name == name) return;
  if (const auto before = named_.find(worker.info.name); before != named_.end()) {
    if (--before->second == 0) named_.erase(before);
  }
  named_[name] += 1;
  worker.info.name = name;
}

Scheduler::Demand Scheduler::DemandFor(const Slot& slot) const {
  const Capabilities any;
  const auto could_run = [&](const store::Requirement& requirement) {
    return any.WhyNot(slot, requirement).empty();
  };
  Demand demand;
  demand.waiting_jobs = ready_.Waiting(could_run);
  for (const auto& [id, worker] : workers_) {
    if (!TakesJobs(worker) || Quarantined(worker)) continue;
    const Capabilities& capabilities = worker.info.capabilities;
    for (const Slot& one : worker.info.slots) {
      if (worker.taken.count(one.slot) != 0 || one.device_kind != slot.device_kind) continue;
      const bool helps =
          demand.waiting_jobs == 0 || ready_.Waiting([&](const store::Requirement& requirement) {
            return could_run(requirement) && capabilities.WhyNot(one, requirement).empty();
          }) > 0;
      demand.free_slots += helps ? 1 : 0;
    }
  }
  return demand;
}

std::vector<WorkerStatus> Scheduler::Workers() const {
  const absl::Duration now = clock_.Monotonic();
  std::vector<WorkerStatus> statuses;
  for (const auto& [id, worker] : workers_) {
    WorkerStatus& status = statuses.emplace_back();
    status.worker_id = id;
    status.connected = worker.link != nullptr;
    status.silent = std::max(now - worker.heard, absl::ZeroDuration());
    status.quarantine_left = std::max(worker.quarantined_until - now, absl::ZeroDuration());
    if (status.connected) status.loads = worker.loads;
    if (status.connected && worker.time_over != absl::InfiniteDuration()) {
      status.time_left = std::max(worker.time_over - now, absl::ZeroDuration());
    }
    for (const std::int64_t attempt_id : worker.attempts) {
      const Attempt& attempt = attempts_.at(attempt_id);
      if (attempt.ended) continue;
      const absl::Duration left = std::max(attempt.lease_end - now, absl::ZeroDuration());
      status.give_up_left = std::min(status.give_up_left.value_or(left), left);
      status.leases.push_back({.attempt_id = attempt_id,
                               .job_id = attempt.assignment.job_id,
                               .slot = attempt.assignment.slot,
                               .age = std::max(options_.lease - left, absl::ZeroDuration()),
                               .left = left});
    }
  }
  return statuses;
}

}  // namespace pelab::sched
