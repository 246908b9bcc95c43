// What the scaler tells the coordinator, and takes from it: queues, pauses, workers that are gone.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "worker/scale/scaler.h"

namespace pelab::scale {

absl::Status Scaler::Report() {
  if (!reports_) return absl::OkStatus();
  std::vector<QueueReport> reports;
  for (const QueueState& state : queues_) {
    // Before the first look nothing is known of its allocations.
    if (state.looked) {
      reports.push_back({state.queue.name, &state.allocations, state.throttle.pause()});
    }
  }
  PELAB_ASSIGN_OR_RETURN(const std::vector<GivenQueue> given,
                         coordinator_->Report(reports, spans_->news()));
  spans_->ForgetNews();
  // From now on the pauses are the coordinator's.
  for (QueueState& state : queues_) {
    if (state.throttle.paused()) state.throttle = Throttle();
  }
  Take(given);
  return absl::OkStatus();
}

void Scaler::Take(const std::vector<GivenQueue>& given) {
  std::erase_if(queues_, [&given](const QueueState& state) {
    const bool gone = std::none_of(given.begin(), given.end(), [&state](const GivenQueue& one) {
      return one.queue.name == state.queue.name;
    });
    if (gone) spdlog::info("queue {}: removed; its workers go on", state.queue.name);
    return gone;
  });
  for (const GivenQueue& one : given) {
    auto found = std::find_if(queues_.begin(), queues_.end(), [&one](const QueueState& state) {
      return state.queue.name == one.queue.name;
    });
    if (found == queues_.end()) {
      spdlog::info("queue {}: added", one.queue.name);
      found = queues_.insert(queues_.end(), {.queue = one.queue});
    }
    TakeSettings(one, *found);
  }
}

void Scaler::TakeSettings(const GivenQueue& given, QueueState& state) {
  if (!(state.queue == given.queue)) spdlog::info("queue {}: new settings", given.queue.name);
  if (!given.paused.empty() && given.paused != state.paused) {
    spdlog::warn("queue {}: paused: {}", given.queue.name, given.paused);
  }
  if (given.paused.empty() && !state.paused.empty()) {
    spdlog::info("queue {}: resumed", given.queue.name);
    state.throttle = Throttle();  // refusals of before the pause do not hold it back
    state.said.clear();
  }
  state.queue = given.queue;
  state.paused = given.paused;
  state.removing = given.removing;
}

// The worker of an allocation that is over may look alive for as long as a lease.
void Scaler::TellGone(const std::vector<Sighting>& listed, const Workers& workers,
                      QueueState& state) {
  std::set<std::string> ids;
  for (const Sighting& one : listed) {
    ids.insert(one.id);
    // Also those that this program never had, because it started after their end.
    const SlurmPhase slurm = PhaseOf(one.state);
    if (slurm.known && slurm.phase == Phase::kOver) state.over[one.id] = one.state;
  }
  for (const auto& [id, last] : std::exchange(state.over, {})) {
    const auto worker = workers.find(WorkerPrefix(state.queue) + id);
    const bool lives = worker != workers.end() && worker->second;
    if (!may_tell_ || !lives || state.told.contains(id)) continue;
    if (!TellOneGone(id, last, state)) state.over[id] = last;
  }
  std::erase_if(state.told, [&ids](const std::string& id) { return !ids.contains(id); });
}

// Returns whether it need not be told again. It is told once: if the worker lives all the same, it
// comes back, and its next jobs are its own.
bool Scaler::TellOneGone(const std::string& id, const std::string& last, QueueState& state) {
  const std::string worker = WorkerPrefix(state.queue) + id;
  const absl::StatusOr<int> lost = coordinator_->WorkerGone(
      worker,
      absl::StrCat("allocation ", id, " is over", last.empty() ? "" : absl::StrCat(": ", last)),
      spans_->Of(id));
  if (lost.ok()) {
    state.told.insert(id);
    spdlog::info("queue {}: the worker of allocation {} is gone; {} attempts are lost",
                 state.queue.name, id, *lost);
    return true;
  }
  spdlog::warn("telling that worker {} is gone: {}", worker, std::string(lost.status().message()));
  // Its leases run out by themselves.
  may_tell_ = !absl::IsPermissionDenied(lost.status()) && !absl::IsUnimplemented(lost.status());
  return !may_tell_;
}

void Scaler::CancelWaiting(QueueState& state) {
  for (const auto& [id, allocation] : state.allocations.all()) {
    if (allocation.phase != Phase::kWaiting || !state.cancelled.insert(id).second) continue;
    spdlog::info("queue {}: cancelling allocation {}, which waits: the queue is being removed",
                 state.queue.name, id);
    const absl::Status cancelled = batch_->Cancel(id);
    if (cancelled.ok()) continue;
    spdlog::warn("{}", std::string(cancelled.message()));
    state.cancelled.erase(id);
  }
}

}  // namespace pelab::scale
