// A place among calls that hold a thread, or something else that is scarce, for long.
#pragma once

#include <atomic>

namespace pelab::service {

// Given back when it goes.
class Seat {
 public:
  Seat(std::atomic<int>& taken, int most) : taken_(taken), got_(taken.fetch_add(1) < most) {}
  ~Seat() { taken_.fetch_sub(1); }
  Seat(const Seat&) = delete;
  bool got() const { return got_; }

 private:
  std::atomic<int>& taken_;
  const bool got_;
};

}  // namespace pelab::service
