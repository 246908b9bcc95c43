// Decides when a daemon ends by itself: because it was idle for long, or because its time is nearly
// over. No I/O and no clock: the caller passes the times.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

struct RetirementLimits {
  absl::Duration idle_exit = absl::InfiniteDuration();   // end after so long without an attempt
  absl::Duration time_limit = absl::InfiniteDuration();  // the daemon's time, from its start on
  // Give the attempts back so long before the limit, or two epochs before it if that is earlier.
  absl::Duration margin = absl::Seconds(120);
};

// Not thread-safe.
class Retirement {
 public:
  // `now` is when the daemon's time began. It is idle from the first Look on, because it may take
  // seconds to start. A margin of more than half the limit is cut to half of it, so that a daemon
  // with little time does something.
  Retirement(const RetirementLimits& limits, absl::Duration now);

  // Why the daemon has to end now; REASON_UNSPECIFIED: it goes on. `busy`: it holds attempts, or
  // events that are not acknowledged. `longest_epoch`: of the trainers that run; zero if none has
  // ended an epoch.
  v1::Goodbye::Reason Look(absl::Duration now, bool busy, absl::Duration longest_epoch);

  // When to call Look again at the latest, if nothing changes before.
  absl::Duration NextLook() const { return next_look_; }

  // The end of the daemon's time, on the clock of the calls; infinite if it has no limit.
  absl::Duration end() const { return end_; }
  absl::Duration margin() const { return margin_; }

 private:
  const absl::Duration idle_exit_;
  const absl::Duration end_;
  const absl::Duration margin_;
  std::optional<absl::Duration> idle_since_;
  absl::Duration next_look_;
};

}  // namespace pelab::agent
