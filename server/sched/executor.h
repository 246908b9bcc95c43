// Where the scheduler's steps run: one at a time, in order. A thread in the coordinator, a loop
// under a false clock in tests.
#pragma once

#include <functional>

#include "absl/time/time.h"

namespace pelab::sched {

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `step` soon, after everything that was posted before. Thread-safe.
  virtual void Post(std::function<void()> step) = 0;
  // Runs `step` once the monotonic clock has reached `when`. Thread-safe.
  virtual void PostAt(absl::Duration when, std::function<void()> step) = 0;
};

}  // namespace pelab::sched
