// A limit on concurrent calls that hold a thread, or another scarce resource, for long.
#pragma once

#include <atomic>

namespace pelab::service {

// Takes one place. The destructor gives it back.
class ThreadSlot {
 public:
  ThreadSlot(std::atomic<int>& taken, int most) : taken_(taken), got_(taken.fetch_add(1) < most) {}
  ~ThreadSlot() { taken_.fetch_sub(1); }
  ThreadSlot(const ThreadSlot&) = delete;
  bool got() const { return got_; }

 private:
  std::atomic<int>& taken_;
  const bool got_;
};

}  // namespace pelab::service
