// A mutex whose waiters name what they wait for, after absl::Mutex. It is made of the standard
// library's because ThreadSanitizer sees through that, while the Abseil that distributions ship
// hides its locks from it.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace pelab {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    // While it is held: once it is free, a waiter may go on and destroy it.
    if (waiters_ > 0) changed_.notify_all();
    mutex_.unlock();
  }

  // Waits, the mutex being held, until `predicate()` is true. It is evaluated under the mutex,
  // after others have unlocked it: what it reads must change under this mutex only.
  template <typename Predicate>
  void Await(const Predicate& predicate) {
    AwaitFor(predicate, absl::InfiniteDuration());
  }
  // At most `timeout`, however the wall clock is set meanwhile; whether it is true now.
  template <typename Predicate>
  bool AwaitFor(const Predicate& predicate, absl::Duration timeout) {
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    ++waiters_;
    bool holds = predicate();
    while (!holds) {
      const absl::Duration left =
          timeout - absl::FromChrono(std::chrono::steady_clock::now() - begin);
      if (left <= absl::ZeroDuration()) break;
      // In slices: the standard library's clocks overflow where a deadline is far away.
      changed_.wait_for(lock, absl::ToChronoMicroseconds(absl::Ceil(std::min(left, absl::Hours(1)),
                                                                    absl::Microseconds(1))));
      holds = predicate();
    }
    --waiters_;
    lock.release();
    return holds;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiters_ = 0;  // guarded by mutex_
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Something that happens once. Thread-safe.
class Notification {
 public:
  void Notify() {
    MutexLock lock(&mutex_);
    notified_ = true;
  }
  bool HasBeenNotified() const {
    MutexLock lock(&mutex_);
    return notified_;
  }
  // Whether it happened within `timeout`.
  bool WaitFor(absl::Duration timeout) const {
    MutexLock lock(&mutex_);
    return mutex_.AwaitFor([this] { return notified_; }, timeout);
  }
  void Wait() const { WaitFor(absl::InfiniteDuration()); }

 private:
  mutable Mutex mutex_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pelab
