// A mutex with condition waits, modeled on absl::Mutex: a waiter passes the condition it waits for.
// It is built on std::mutex because ThreadSanitizer understands std::mutex. Distributions ship
// Abseil without instrumentation, so ThreadSanitizer cannot see absl::Mutex's locks.
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
    // Notify before unlocking: once the mutex is free, a waiter may continue and destroy it.
    if (waiters_ > 0) changed_.notify_all();
    mutex_.unlock();
  }

  // Waits until `predicate()` is true; the caller holds the mutex. The predicate is evaluated under
  // the mutex, after other threads unlock it or wait, so the data it reads may only change under
  // this mutex.
  template <typename Predicate>
  void Await(const Predicate& predicate) {
    AwaitFor(predicate, absl::InfiniteDuration());
  }
  // Like Await, but for at most `timeout` of monotonic time. Returns whether the predicate is true
  // now.
  template <typename Predicate>
  bool AwaitFor(const Predicate& predicate, absl::Duration timeout) {
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    bool holds = predicate();
    // To wait is to unlock: another waiter may wait for what the caller has just changed.
    if (!holds && waiters_ > 0) changed_.notify_all();
    ++waiters_;
    while (!holds) {
      const absl::Duration left =
          timeout - absl::FromChrono(std::chrono::steady_clock::now() - begin);
      if (left <= absl::ZeroDuration()) break;
      // Wait in slices of an hour: the standard library's clocks overflow for distant deadlines.
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

// An event that happens at most once. Thread-safe.
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
  // Whether the event has happened, after waiting at most `timeout` for it.
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
