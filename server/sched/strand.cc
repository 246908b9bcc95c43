#include "server/sched/strand.h"

#include <pthread.h>

#include <utility>

#include "core/base/mutex.h"

namespace pelab::sched {

Strand::Strand(const Clock& clock) : clock_(clock), thread_([this] { Run(); }) {}

Strand::~Strand() { Stop(); }

void Strand::Post(std::function<void()> step) {
  MutexLock lock(&mutex_);
  if (!stopping_) steps_.push_back(std::move(step));
}

void Strand::PostAt(absl::Duration when, std::function<void()> step) {
  MutexLock lock(&mutex_);
  if (!stopping_) timed_.emplace(when, std::move(step));
}

void Strand::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

// False: the strand is stopping, and no steps are left.
bool Strand::Take(std::deque<std::function<void()>>& steps) {
  MutexLock lock(&mutex_);
  const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !steps_.empty();
  };
  while (!some()) {
    if (timed_.empty()) {
      // A timer that is added during this wait is noticed within 50 ms.
      mutex_.AwaitFor(some, absl::Milliseconds(50));
      continue;
    }
    const absl::Duration wait = timed_.begin()->first - clock_.Monotonic();
    if (wait <= absl::ZeroDuration()) break;
    mutex_.AwaitFor(some, std::min(wait, absl::Milliseconds(50)));
  }
  steps.swap(steps_);
  if (stopping_) return !steps.empty();
  const absl::Duration now = clock_.Monotonic();
  while (!timed_.empty() && timed_.begin()->first <= now) {
    steps.push_back(std::move(timed_.begin()->second));
    timed_.erase(timed_.begin());
  }
  return true;
}

void Strand::Run() {
  pthread_setname_np(pthread_self(), "scheduler");  // shown by top, perf and gdb
  for (;;) {
    std::deque<std::function<void()>> steps;
    if (!Take(steps)) return;
    for (std::function<void()>& step : steps) step();
  }
}

}  // namespace pelab::sched
