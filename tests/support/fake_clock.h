// A clock that moves only when a test advances it.
#pragma once

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace pelab {

// Thread-safe.
class FakeClock final : public Clock {
 public:
  absl::Duration Monotonic() const override {
    MutexLock lock(&mutex_);
    return monotonic_;
  }
  absl::Time Wall() const override {
    MutexLock lock(&mutex_);
    return wall_;
  }
  void Advance(absl::Duration step) {
    MutexLock lock(&mutex_);
    monotonic_ += step;
    wall_ += step;
  }

 private:
  mutable Mutex mutex_;
  absl::Duration monotonic_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1000);
  absl::Time wall_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1'700'000'000);
};

}  // namespace pelab
