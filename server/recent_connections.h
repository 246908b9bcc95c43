// Bounds how many connections a listener has open whose connections end by themselves: it counts
// those that it accepted within that time.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace pelab {

// For one thread.
class RecentConnections {
 public:
  struct Limits {
    std::size_t of_address;  // connections of one peer's address
    std::size_t in_all;
    absl::Duration time;  // after which a connection has ended, whatever its peer does
  };
  explicit RecentConnections(const Limits& limits) : limits_(limits) {}

  // Whether one more connection from `address` may be accepted `now`. If so, it counts. `now` must
  // not go back.
  bool Admit(const std::string& address, absl::Duration now);

 private:
  void Forget(absl::Duration now);

  const Limits limits_;
  std::deque<std::pair<absl::Duration, std::string>> accepted_;  // oldest first
  std::map<std::string, std::size_t> by_address_;
};

}  // namespace pelab
