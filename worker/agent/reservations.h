// Slots and job directories, each used by one trainer at a time. An attempt that is still ending
// keeps its slot and directory until it is gone, even if the coordinator has already assigned the
// slot again.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace pelab::agent {

// Thread-safe.
class Reservations {
 public:
  // Waits until the slot and all directories are free, then takes all at once: a waiting caller
  // holds nothing. Returns false if `give_up` answers true first. Call Poke when the answer of
  // `give_up` changes. It is asked again and again with the mutex held, so it must not block or use
  // this object.
  bool Acquire(int slot, const std::vector<std::string>& directories,
               const std::function<bool()>& give_up) {
    MutexLock lock(&mutex_);
    const auto is_free = [&](const std::string& directory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return directories_.count(directory) == 0;
    };
    const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return give_up() || (slots_.count(slot) == 0 &&
                           std::all_of(directories.begin(), directories.end(), is_free));
    };
    mutex_.Await(ready);
    if (give_up()) return false;
    slots_.insert(slot);
    directories_.insert(directories.begin(), directories.end());
    return true;
  }
  void Release(int slot, const std::vector<std::string>& directories) {
    MutexLock lock(&mutex_);
    slots_.erase(slot);
    for (const std::string& directory : directories) directories_.erase(directory);
  }
  // Makes waiting callers check their conditions again.
  void Poke() { MutexLock lock(&mutex_); }

 private:
  Mutex mutex_;
  std::set<int> slots_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> directories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::agent
