#include "worker/scale/scaler.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/base/status.h"

namespace pelab::scale {
namespace {

// The ids of the allocations whose workers are among `workers`.
std::set<std::string> IdsOf(const Workers& workers, const std::string& prefix) {
  std::set<std::string> ids;
  for (auto at = workers.lower_bound(prefix); at != workers.end() && at->first.starts_with(prefix);
       ++at) {
    ids.insert(at->first.substr(prefix.size()));
  }
  return ids;
}

}  // namespace

Scaler::Scaler(std::vector<Queue> queues, BatchSystem* batch, Coordinator* coordinator,
               AllocationSpans* spans)
    : batch_(batch), coordinator_(coordinator), spans_(spans) {
  for (Queue& queue : queues) queues_.push_back({.queue = std::move(queue)});
}

absl::Status Scaler::Look(absl::Duration now) {
  std::vector<std::string> names;
  names.reserve(queues_.size());
  for (const QueueState& state : queues_) names.push_back(state.queue.name);
  if (names.empty()) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(auto listed, batch_->Look(names));
  const absl::StatusOr<Workers> workers = coordinator_->ListWorkers();
  for (QueueState& state : queues_) {
    const std::vector<Sighting>& sightings = listed[state.queue.name];
    // Before and after, so that a worker counts that came and went between two looks.
    if (workers.ok()) {
      state.allocations.SaidHello(IdsOf(*workers, WorkerPrefix(state.queue)));
    }
    TakeEnded(state.allocations.See(sightings, now), state);
    if (workers.ok()) {
      state.allocations.SaidHello(IdsOf(*workers, WorkerPrefix(state.queue)));
      CancelLate(now, state);
      TellGone(sightings, *workers, state);
    }
    spans_->See(state.allocations);
    if (!std::exchange(state.looked, true)) {
      spdlog::info("queue {}: {} allocations", state.queue.name, state.allocations.active());
    }
  }
  return workers.status();
}

bool Scaler::wants_look() const {
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const QueueState& state) { return !state.looked; });
}

void Scaler::TakeEnded(const std::vector<Ended>& ended, QueueState& state) {
  for (const Ended& one : ended) {
    spdlog::info("queue {}: allocation {} is over{}{}", state.queue.name, one.id,
                 one.state.empty() ? "" : ": ", one.state);
    state.over[one.id] = one.state;
    spans_->Over(one);
    if (one.said_hello) {
      state.throttle.SaidHello();
    } else {
      state.throttle.NeverSaidHello(one.id, one.state);
    }
  }
}

// An allocation that holds a node for long without a worker is of no use to anybody.
void Scaler::CancelLate(absl::Duration now, QueueState& state) {
  for (const std::string& id : state.allocations.Late(now, state.queue.start_timeout)) {
    spdlog::warn("queue {}: the worker of allocation {} did not connect within {}; cancelling it",
                 state.queue.name, id, absl::FormatDuration(state.queue.start_timeout));
    const absl::Status cancelled = batch_->Cancel(id);
    if (!cancelled.ok()) spdlog::warn("{}", std::string(cancelled.message()));
  }
}

int Scaler::ComingSlots(const std::string& device) const {
  int slots = 0;
  for (const QueueState& state : queues_) {
    if (state.queue.device != device) continue;
    const int coming =
        state.allocations.Count(Phase::kWaiting) + state.allocations.Count(Phase::kStarting);
    slots += coming * state.queue.slots;
  }
  return slots;
}

absl::StatusOr<Scaler::Wish> Scaler::WishOf(const QueueState& state, int planned) const {
  const Queue& queue = state.queue;
  Wish wish{.coming = ComingSlots(queue.device) + planned};
  PELAB_ASSIGN_OR_RETURN(wish.demand, coordinator_->DemandFor(queue));
  wish.wanted = Wanted(queue, wish.demand, wish.coming);
  if (state.removing || !state.paused.empty()) return wish;
  wish.now = queues::MaySubmit(queue, wish.wanted, state.allocations.Count(Phase::kWaiting),
                               state.allocations.active());
  return wish;
}

absl::Status Scaler::Step(absl::Duration now) {
  for (QueueState& state : queues_) {
    if (!state.looked) continue;
    if (state.removing) CancelWaiting(state);
    if (state.removing || !state.paused.empty()) continue;
    PELAB_ASSIGN_OR_RETURN(const Wish wish, WishOf(state));
    state.demand = wish.demand;
    if (wish.now > 0) Submit(wish.now, now, state);
  }
  return absl::OkStatus();
}

void Scaler::Submit(int count, absl::Duration now, QueueState& state) {
  for (int i = 0; i < count; ++i) {
    const std::string why_not = state.throttle.WhyNot(now);
    if (!why_not.empty()) {
      // Said once, not at every step.
      const std::string reason = state.throttle.paused() ? why_not : "refused";
      if (state.said != reason) spdlog::warn("queue {}: {}", state.queue.name, why_not);
      state.said = reason;
      return;
    }
    trace::Span span = spans_->Begin(state.queue.name);
    const absl::StatusOr<std::string> id = batch_->Submit(state.queue, span.context);
    if (!id.ok()) {
      spans_->Refused(std::move(span), std::string(id.status().message()));
      state.throttle.Refused(std::string(id.status().message()), now);
      state.said.clear();
      spdlog::warn("queue {}: {}", state.queue.name, std::string(id.status().message()));
      return;
    }
    state.throttle.Accepted();
    state.said.clear();
    state.allocations.Submitted(*id);
    spans_->Submitted(std::move(span), *id);
    spdlog::info("queue {}: submitted allocation {}; {} jobs wait, {} slots are free",
                 state.queue.name, *id, state.demand.waiting_jobs, state.demand.free_slots);
  }
}

}  // namespace pelab::scale
