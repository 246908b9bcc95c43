#include "server/metrics/events.h"

#include <variant>

namespace pelab::metrics {
namespace {

// A commit is one fsync, so it takes a millisecond on a good disk and a second on one that is
// nearly dead.
const prometheus::Histogram::BucketBoundaries kCommitSeconds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};
// From jobs that start at once to those at the end of a sweep of a week.
const prometheus::Histogram::BucketBoundaries kWaitSeconds = {
    0.1, 0.5, 1, 5, 30, 60, 300, 1800, 3600, 14400, 43200, 86400, 259200, 604800};

}  // namespace

Events::Events() : commit_seconds_(kCommitSeconds), dispatch_wait_seconds_(kWaitSeconds) {}

void Events::Stored(const store::EventStored& event) {
  if (event.status != store::EventStored::kStored) return;
  if (event.epoch_seconds > 0) epochs_stored_.fetch_add(1, std::memory_order_relaxed);
  if (!event.change) return;
  attempts_ended_[static_cast<std::size_t>(event.change->outcome)]
                 [static_cast<std::size_t>(event.change->error)]
                     .fetch_add(1, std::memory_order_relaxed);
}

void Events::Superseded(std::size_t attempts) {
  attempts_ended_[static_cast<std::size_t>(state::Outcome::kSuperseded)]
                 [static_cast<std::size_t>(state::ErrorKind::kNone)]
                     .fetch_add(attempts, std::memory_order_relaxed);
}

void Events::Committed(absl::Duration took,
                       const absl::StatusOr<std::vector<store::ApplyResult>>& results) {
  commit_seconds_.Observe(absl::ToDoubleSeconds(took));
  if (!results.ok()) return;
  for (const store::ApplyResult& result : *results) {
    if (!result.ok()) continue;
    if (const auto* event = std::get_if<store::EventStored>(&*result)) Stored(*event);
    if (const auto* jobs = store::JobsOf(*result)) Superseded(jobs->superseded.size());
  }
}

void Events::Dispatched(absl::Duration waited) {
  dispatch_wait_seconds_.Observe(absl::ToDoubleSeconds(waited));
}

void Events::AddTo(Scrape& scrape) const {
  auto ended = scrape.Counter("pelab_attempts_ended_total",
                              "Attempts that ended, by how, and by the kind of their error.");
  for (std::size_t outcome = 0; outcome < kOutcomes; ++outcome) {
    for (std::size_t error = 0; error < kErrors; ++error) {
      const std::uint64_t count = attempts_ended_[outcome][error];
      // increase() does not see the first event of a series that begins with it, so each outcome
      // has a series from the start.
      if (count == 0 && error != 0) continue;
      ended.Add(static_cast<double>(count),
                {{"outcome", state::Name(static_cast<state::Outcome>(outcome))},
                 {"error", state::Name(static_cast<state::ErrorKind>(error))}});
    }
  }
  scrape.Counter("pelab_epochs_stored_total", "Epochs of training that were stored.")
      .Add(static_cast<double>(epochs_stored_));
  scrape
      .Histogram("pelab_dispatch_wait_seconds",
                 "How long jobs waited in the queue until they were assigned to a slot; after a "
                 "start of the coordinator, from that start.")
      .Add(dispatch_wait_seconds_);
  scrape
      .Histogram("pelab_store_commit_duration_seconds",
                 "How long a commit of the database took, its fsync included.")
      .Add(commit_seconds_);
}

}  // namespace pelab::metrics
