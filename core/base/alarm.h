// Ends another thread's wait.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace pelab {

// An event that may happen again and again. One thread waits for it; any thread rings. An alarm has
// a mutex of its own, so that the queue beside it can grow without waking the thread that waits.
// Thread-safe.
class Alarm {
 public:
  // Ends the wait that is under way. Later ones end at once, until Reset.
  void Ring() { Set(true); }
  // Forgets what was rung before.
  void Reset() { Set(false); }
  // Waits until somebody rings, but at most `timeout` of monotonic time. Does not reset.
  void WaitFor(absl::Duration timeout) {
    MutexLock lock(&mutex_);
    mutex_.AwaitFor([this] { return rung_; }, timeout);
  }

 private:
  void Set(bool rung) {
    MutexLock lock(&mutex_);
    rung_ = rung;
  }

  Mutex mutex_;
  bool rung_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pelab
