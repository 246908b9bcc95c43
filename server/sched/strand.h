// An executor that runs its steps on a thread of its own.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "core/base/alarm.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "server/sched/executor.h"

namespace pelab::sched {

class Strand final : public Executor {
 public:
  explicit Strand(const Clock& clock);
  ~Strand() override;  // like Stop

  void Post(std::function<void()> step) override;
  void PostLazily(std::function<void()> step) override;
  void PostAt(absl::Duration when, std::function<void()> step) override;

  // Runs what was posted before, then ends the thread. Later posts and pending timers never run.
  void Stop();

 private:
  void Run();
  absl::Duration UntilNextTimer();
  bool Take(std::deque<std::function<void()>>& steps);

  const Clock& clock_;
  Alarm posted_;  // a step that is not lazy was posted, or Stop was called
  Mutex mutex_;
  std::deque<std::function<void()>> steps_ ABSL_GUARDED_BY(mutex_);
  std::multimap<absl::Duration, std::function<void()>> timed_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::sched
