// When the next scheduled backup is due.
#pragma once

#include <functional>
#include <optional>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/rpc/backoff.h"

namespace pelab::backups {

// Measures on the monotonic clock, so a wall clock that is set neither delays nor repeats a backup.
// Not thread-safe.
class Schedule {
 public:
  // `newest` is the time of the newest backup that exists; the next one is due `every` after it. If
  // there is none, or its time is in the future, one is due at once. `unit_random` draws numbers
  // from [0, 1). `clock` must outlive the object.
  Schedule(const Clock& clock, absl::Duration every, std::optional<absl::Time> newest,
           std::function<double()> unit_random);

  // How long until a backup is due; zero: it is due now.
  absl::Duration Wait() const;
  // Call Begin before a backup is tried, and Succeeded or Failed after it.
  void Begin();
  // The next one is due `every` after the call of Begin.
  void Succeeded();
  // The next one is due after a pause: of a minute at first, later of up to an hour, and never
  // longer than `every`. Returns it.
  absl::Duration Failed();

 private:
  const Clock& clock_;
  const absl::Duration every_;
  absl::Duration began_;
  absl::Duration due_;
  rpc::Backoff backoff_;
};

}  // namespace pelab::backups
