// Slots and job directories, each used by one attempt at a time: an attempt that is still ending
// keeps its own until it is gone, whatever the coordinator has assigned meanwhile.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace pelab::agent {

// Thread-safe.
class Reservations {
 public:
  // Waits until both are free and takes them; false where `give_up` says so first. Call Poke when
  // its answer changes.
  bool Acquire(int slot, const std::string& directory, const std::function<bool()>& give_up) {
    MutexLock lock(&mutex_);
    const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return give_up() || (slots_.count(slot) == 0 && directories_.count(directory) == 0);
    };
    mutex_.Await(ready);
    if (give_up()) return false;
    slots_.insert(slot);
    directories_.insert(directory);
    return true;
  }
  void Release(int slot, const std::string& directory) {
    MutexLock lock(&mutex_);
    slots_.erase(slot);
    directories_.erase(directory);
  }
  // Makes waiters look again.
  void Poke() { MutexLock lock(&mutex_); }

 private:
  Mutex mutex_;
  std::set<int> slots_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> directories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::agent
