// Counts what happens in the store and the scheduler. A scrape makes them wait for no longer than
// the copy of a histogram takes.
#pragma once

#include <prometheus/histogram.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/metrics/scrape.h"
#include "core/state/state.h"
#include "server/store/store.h"

namespace pelab::metrics {

// Thread-safe.
class Events {
 public:
  Events();

  // store::WriterOptions::on_commit.
  void Committed(absl::Duration took,
                 const absl::StatusOr<std::vector<store::ApplyResult>>& results);
  // sched::SchedulerOptions::on_dispatch.
  void Dispatched(absl::Duration waited);

  void AddTo(Scrape& scrape) const;

 private:
  using Count = std::atomic<std::uint64_t>;
  static constexpr std::size_t kOutcomes =
      static_cast<std::size_t>(state::Outcome::kSuperseded) + 1;
  static constexpr std::size_t kErrors = static_cast<std::size_t>(state::ErrorKind::kStalled) + 1;

  void Stored(const store::EventStored& event);
  void Superseded(std::size_t attempts);

  std::array<std::array<Count, kErrors>, kOutcomes> attempts_ended_ = {};
  Count epochs_stored_{0};
  prometheus::Histogram commit_seconds_;
  prometheus::Histogram dispatch_wait_seconds_;
};

}  // namespace pelab::metrics
