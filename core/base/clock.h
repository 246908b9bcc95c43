// Time as an interface, so that leases, back-offs and heartbeats can be tested without waiting.
#pragma once

#include "absl/time/time.h"

namespace pelab {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Time since some fixed point; never goes back, goes on while the wall clock is set.
  virtual absl::Duration Monotonic() const = 0;
  // What a calendar and a clock on the wall say.
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
