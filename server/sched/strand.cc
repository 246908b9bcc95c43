#include "server/sched/strand.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "core/base/mutex.h"

namespace pelab::sched {
namespace {

// Lazy steps, and timers that are added during a wait, are noticed after so long.
constexpr absl::Duration kLongestWait = absl::Milliseconds(50);

}  // namespace

Strand::Strand(const Clock& clock) : clock_(clock), thread_([this] { Run(); }) {}

Strand::~Strand() { Stop(); }

void Strand::Post(std::function<void()> step) {
  PostLazily(std::move(step));
  posted_.Ring();
}

void Strand::PostLazily(std::function<void()> step) {
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
  posted_.Ring();
  if (thread_.joinable()) thread_.join();
}

absl::Duration Strand::UntilNextTimer() {
  MutexLock lock(&mutex_);
  if (timed_.empty()) return absl::InfiniteDuration();
  return timed_.begin()->first - clock_.Monotonic();
}

// Waits for steps and timers, and takes those that are due; there may be none. False: the strand is
// stopping, and no steps are left.
bool Strand::Take(std::deque<std::function<void()>>& steps) {
  posted_.WaitFor(std::min(UntilNextTimer(), kLongestWait));
  // First the alarm, then the queue: a step that is posted in between is taken, or rings again.
  posted_.Reset();
  MutexLock lock(&mutex_);
  steps.swap(steps_);
  if (stopping_) {
    posted_.Ring();  // nothing more comes: the next call does not wait either
    return !steps.empty();
  }
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
