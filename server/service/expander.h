// Turns submitted sweeps into jobs, on a thread of its own. It builds slices for at most 10 ms each
// and takes the sweeps in turn, so that a large sweep delays nobody and its first jobs run while
// later ones are still being made. The same thread drops the jobs of very large cancelled sweeps
// and deletes the jobs of deleted sweeps.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/experiment/sweep.h"
#include "server/sched/scheduler.h"
#include "server/store/journal.h"

namespace pelab::service {

// Makes the jobs of the cells from `from` on, until 10 ms are over or `max_cells` jobs are made.
store::ExpandSlice BuildSlice(std::int64_t sweep_id, const experiment::Sweep& sweep,
                              std::uint64_t from, std::size_t max_cells, const Clock& clock);

class Expander {
 public:
  Expander(const Clock& clock, store::Journal& journal, sched::Executor& executor,
           sched::Scheduler& scheduler);
  ~Expander();  // like Stop

  // Expands the sweep from cell `from` on. If the sweep is already being expanded, `sweep` replaces
  // its description, which then has more cells, and `from` is ignored. Thread-safe.
  void Add(std::int64_t sweep_id, experiment::Sweep sweep, std::uint64_t from);
  // Announces that a submission is coming: long-running expansions, drops and deletions pause for a
  // moment (15 ms). Thread-safe.
  void MakeWay();
  // Withdraws the remaining claims of a cancelled sweep (store::DropSlice). Thread-safe.
  void Drop(std::int64_t sweep_id);
  // Deletes the remaining jobs of a deleted sweep (store::DeleteSlice). Thread-safe.
  void Delete(std::int64_t sweep_id);
  // Waits up to `timeout`; returns whether the sweep's expansion is complete or was given up.
  // Thread-safe.
  bool WaitFor(std::int64_t sweep_id, absl::Duration timeout);
  // Ends the thread after the current slice. The rest is expanded after the next start.
  void Stop();

 private:
  struct Expansion {
    experiment::Sweep sweep;
    std::uint64_t next = 0;
    // The slice from `next` on, built while the previous one was being stored.
    std::optional<store::ExpandSlice> ahead;
  };
  struct Task {
    std::int64_t sweep_id = 0;
    enum Kind { kExpand, kDrop, kDelete };
    Kind kind = kExpand;
    bool small = false;  // takes one or two slices, so Add puts it at the front of the queue
  };
  enum class Progress { kMore, kDone, kRetry };

  void Run();
  Progress Expand(std::int64_t sweep_id);
  Progress DropSome(std::int64_t sweep_id);
  Progress DeleteSome(std::int64_t sweep_id);
  Progress Go(const Task& task);

  const Clock& clock_;
  store::Journal& journal_;
  sched::Executor& executor_;
  sched::Scheduler& scheduler_;
  Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::int64_t, Expansion> expansions_ ABSL_GUARDED_BY(mutex_);
  absl::Duration way_until_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::service
