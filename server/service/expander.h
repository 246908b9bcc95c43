// Turns submitted sweeps into jobs on a thread of its own, in slices of at most 10 ms each, so that
// a large sweep holds up nobody: sweeps take turns, and jobs are dispatched while others are still
// to come. It also drops the jobs of very large sweeps that were cancelled, and deletes those of
// sweeps that were deleted.
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

// The jobs of the next cells from `from` on, as many as can be made in 10 ms, at most `max_cells`.
store::ExpandSlice BuildSlice(std::int64_t sweep_id, const experiment::Sweep& sweep,
                              std::uint64_t from, std::size_t max_cells, const Clock& clock);

class Expander {
 public:
  Expander(const Clock& clock, store::Journal& journal, sched::Executor& executor,
           sched::Scheduler& scheduler);
  ~Expander();  // as Stop

  // Goes on with the sweep at cell `from`; where it is being expanded already, it is `sweep` from now
  // on, which has more cells. Thread-safe.
  void Add(std::int64_t sweep_id, experiment::Sweep sweep, std::uint64_t from);
  // Somebody is about to submit something: what is expanded or dropped at length lets others through
  // for a moment. Thread-safe.
  void MakeWay();
  // Drops what is left of a cancelled sweep (store::DropSlice). Thread-safe.
  void Drop(std::int64_t sweep_id);
  // Deletes what is left of a deleted sweep (store::DeleteSlice). Thread-safe.
  void Delete(std::int64_t sweep_id);
  // Whether the sweep was expanded, or given up, within `timeout`. Thread-safe.
  bool WaitFor(std::int64_t sweep_id, absl::Duration timeout);
  // Ends after the slice that is under way; the rest goes on at the next start.
  void Stop();

 private:
  struct Expansion {
    experiment::Sweep sweep;
    std::uint64_t next = 0;
    std::optional<store::ExpandSlice> ahead;  // from `next` on, made while another was stored
  };
  struct Task {
    std::int64_t sweep_id = 0;
    enum Kind { kExpand, kDrop, kDelete };
    Kind kind = kExpand;
    bool small = false;  // done in a slice or two: does not wait for its turn
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
