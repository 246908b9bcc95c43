// Runs the scheduler's steps one at a time, in order. In the coordinator this is a thread, in tests
// a loop under a fake clock.
#pragma once

#include <functional>
#include <utility>

#include "absl/time/time.h"

namespace pelab::sched {

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `step` soon, after everything that was posted earlier. Thread-safe.
  virtual void Post(std::function<void()> step) = 0;
  // Like Post, for a step that nobody waits for: it runs in its turn, but may be up to 50 ms late.
  // Many of them cost one wake of the executor's thread.
  virtual void PostLazily(std::function<void()> step) { Post(std::move(step)); }
  // Runs `step` when the monotonic clock has reached `when`. Thread-safe.
  virtual void PostAt(absl::Duration when, std::function<void()> step) = 0;
};

}  // namespace pelab::sched
