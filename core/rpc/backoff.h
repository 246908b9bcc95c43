// The delay before the next try: exponential, capped, and with jitter, so that many clients do not
// retry at the same moment.
#pragma once

#include <functional>

#include "absl/time/time.h"

namespace pelab::rpc {

// Not thread-safe.
class Backoff {
 public:
  // `unit_random` draws numbers from [0, 1).
  Backoff(absl::Duration initial, absl::Duration cap, std::function<double()> unit_random);

  // The n-th call since Reset returns min(cap, initial * 2^(n-1)) times a factor drawn from [0.5,
  // 1).
  absl::Duration Next();
  void Reset();
  void SetCap(absl::Duration cap);

 private:
  const absl::Duration initial_;
  absl::Duration cap_;
  absl::Duration next_;
  std::function<double()> unit_random_;
};

}  // namespace pelab::rpc
