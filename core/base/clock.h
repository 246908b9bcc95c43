// Time as an interface, so that tests of leases, back-offs and heartbeats need not wait.
#pragma once

#include "absl/time/time.h"

namespace pelab {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Time elapsed since some fixed point. Never decreases; unaffected by changes of the wall clock.
  virtual absl::Duration Monotonic() const = 0;
  // The current time of the wall clock; it jumps when the clock is set.
  virtual absl::Time Wall() const = 0;
};

class SystemClock final : public Clock {
 public:
  absl::Duration Monotonic() const override;
  absl::Time Wall() const override;
  // One instance for the whole program; never destroyed.
  static const SystemClock& Instance();
};

}  // namespace pelab
