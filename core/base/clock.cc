#include "core/base/clock.h"

#include <ctime>

#include "absl/time/clock.h"

namespace pelab {

absl::Duration SystemClock::Monotonic() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

absl::Time SystemClock::Wall() const { return absl::Now(); }

const SystemClock& SystemClock::Instance() {
  static const SystemClock* const instance = new SystemClock;
  return *instance;
}

}  // namespace pelab
