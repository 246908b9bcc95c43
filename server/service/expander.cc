#include "server/service/expander.h"

#include <pthread.h>

#include <utility>

#include "core/base/log.h"
#include "core/base/log_scope.h"
#include "core/base/mutex.h"
#include "core/experiment/cell_maker.h"
#include "server/service/blocking.h"

namespace pelab::service {
namespace {

constexpr absl::Duration kSlice = absl::Milliseconds(10);
constexpr std::size_t kMaxCells = 64;  // per slice; the writer stores so many in 20 to 30 ms
// How long a small sweep takes from its arrival until its jobs are with workers.
constexpr absl::Duration kWay = absl::Milliseconds(15);
constexpr absl::Duration kRetry = absl::Milliseconds(500);

store::NewCell ToNewCell(const experiment::Cell& cell, const experiment::Resources& resources) {
  return {.ordinal = cell.ordinal,
          .key = cell.key,
          .pe_label = cell.pe_label,
          .protocol_label = cell.protocol_label,
          .seed = cell.job.seed,
          .spec_json = cell.canonical_json,
          .requirement = {.pe = cell.job.pe,
                          .pe_version = cell.job.pe_version,
                          .task = cell.task_label,
                          .task_version = cell.job.task_version,
                          .device_kind = resources.device,
                          .memory_bytes = resources.memory_bytes},
          .epochs = static_cast<int>(cell.job.Int("train.epochs"))};
}

}  // namespace

store::ExpandSlice BuildSlice(std::int64_t sweep_id, const experiment::Sweep& sweep,
                              std::uint64_t from, std::size_t max_cells, const Clock& clock) {
  store::ExpandSlice slice{
      .sweep_id = sweep_id, .from = from, .next = from, .now = absl::ToUnixMillis(clock.Wall())};
  const absl::Duration end = clock.Monotonic() + kSlice;
  experiment::CellMaker cells(sweep);
  while (slice.next < sweep.cells() && slice.cells.size() < max_cells) {
    if (const auto cell = cells.At(slice.next)) {
      slice.cells.push_back(ToNewCell(*cell, sweep.resources()));
    }
    slice.next += 1;
    if (clock.Monotonic() >= end) break;
  }
  slice.last = slice.next == sweep.cells();
  return slice;
}

Expander::Expander(const Clock& clock, store::Journal& journal, sched::Executor& executor,
                   sched::Scheduler& scheduler)
    : clock_(clock), journal_(journal), executor_(executor), scheduler_(scheduler), thread_([this] {
        Run();
      }) {}

Expander::~Expander() { Stop(); }

void Expander::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Expander::Add(std::int64_t sweep_id, experiment::Sweep sweep, std::uint64_t from) {
  MutexLock lock(&mutex_);
  const auto found = expansions_.find(sweep_id);
  if (found != expansions_.end()) {
    found->second.sweep = std::move(sweep);
    return;
  }
  const bool small = sweep.cells() - from <= 2 * kMaxCells;
  expansions_[sweep_id] = {std::move(sweep), from};
  tasks_.insert(small ? tasks_.begin() : tasks_.end(), {.sweep_id = sweep_id, .small = small});
}

void Expander::MakeWay() {
  MutexLock lock(&mutex_);
  way_until_ = clock_.Monotonic() + kWay;
}

void Expander::Drop(std::int64_t sweep_id) {
  MutexLock lock(&mutex_);
  tasks_.push_back({.sweep_id = sweep_id, .kind = Task::kDrop});
}

void Expander::Delete(std::int64_t sweep_id) {
  MutexLock lock(&mutex_);
  tasks_.push_back({.sweep_id = sweep_id, .kind = Task::kDelete});
}

bool Expander::WaitFor(std::int64_t sweep_id, absl::Duration timeout) {
  MutexLock lock(&mutex_);
  const auto done = [this, sweep_id]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || expansions_.count(sweep_id) == 0;
  };
  mutex_.AwaitFor(done, timeout);
  return expansions_.count(sweep_id) == 0;
}

Expander::Progress Expander::Expand(std::int64_t sweep_id) {
  Expansion expansion;
  {
    MutexLock lock(&mutex_);
    Expansion& stored = expansions_[sweep_id];
    expansion = {stored.sweep, stored.next, std::exchange(stored.ahead, std::nullopt)};
  }
  // The slice that was built ahead is useless if the sweep has got more seeds or continues at
  // another cell.
  const auto& ahead = expansion.ahead;
  const bool made = ahead && ahead->from == expansion.next &&
                    ahead->last == (ahead->next == expansion.sweep.cells());
  store::ExpandSlice slice =
      made ? *std::move(expansion.ahead)
           : BuildSlice(sweep_id, expansion.sweep, expansion.next, kMaxCells, clock_);
  const std::uint64_t next = slice.next;
  const bool last = slice.last;
  // The writer thread informs the scheduler, in the order of the commits.
  PendingWrite pending(journal_, std::move(slice), [this](const store::WriteResult& result) {
    executor_.Post([this, slice_stored = std::get<store::SliceStored>(result)] {
      scheduler_.Expanded(slice_stored);
    });
  });
  std::optional<store::ExpandSlice> following;
  if (!last) following = BuildSlice(sweep_id, expansion.sweep, next, kMaxCells, clock_);
  const auto stored = pending.Wait();
  if (!stored.ok()) {
    const LogScope scope({.sweep_id = sweep_id});
    spdlog::warn("sweep {} is not expanded yet: {}", sweep_id,
                 std::string{stored.status().message()});
    return Progress::kRetry;
  }
  const auto& result = std::get<store::SliceStored>(*stored);
  MutexLock lock(&mutex_);
  const auto found = expansions_.find(sweep_id);
  found->second.next = result.applied ? next : result.resume_at.value_or(next);
  found->second.ahead = std::move(following);
  const bool over = !result.applied && !result.resume_at;
  if (!over && found->second.next < found->second.sweep.cells()) return Progress::kMore;
  expansions_.erase(found);
  return Progress::kDone;
}

Expander::Progress Expander::DropSome(std::int64_t sweep_id) {
  const store::DropSlice slice{sweep_id, absl::ToUnixMillis(clock_.Wall())};
  auto dropped = AppendAndWait(journal_, slice, [this](const store::WriteResult& result) {
    executor_.Post([this, cancelled = std::get<store::Cancelled>(result)] {
      scheduler_.Cancelled(cancelled);
    });
  });
  if (!dropped.ok()) return Progress::kRetry;
  return std::get<store::Cancelled>(*dropped).more ? Progress::kMore : Progress::kDone;
}

Expander::Progress Expander::DeleteSome(std::int64_t sweep_id) {
  const store::DeleteSlice slice{sweep_id, absl::ToUnixMillis(clock_.Wall())};
  auto deleted = AppendAndWait(journal_, slice, [this](const store::WriteResult& result) {
    executor_.Post([this, cancelled = std::get<store::SweepDeleted>(result).cancelled] {
      scheduler_.Cancelled(cancelled);
    });
  });
  if (!deleted.ok()) return Progress::kRetry;
  const auto& result = std::get<store::SweepDeleted>(*deleted);
  if (result.waits) return Progress::kRetry;
  return result.more ? Progress::kMore : Progress::kDone;
}

Expander::Progress Expander::Go(const Task& task) {
  switch (task.kind) {
    case Task::kExpand:
      return Expand(task.sweep_id);
    case Task::kDrop:
      return DropSome(task.sweep_id);
    case Task::kDelete:
      return DeleteSome(task.sweep_id);
  }
  return Progress::kDone;
}

void Expander::Run() {
  pthread_setname_np(pthread_self(), "expander");  // shown by top, perf and gdb
  for (;;) {
    Task task;
    {
      MutexLock lock(&mutex_);
      const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !tasks_.empty();
      };
      mutex_.Await(some);
      // Waits once before each slice, so that large sweeps progress however many small ones come.
      const auto urgent = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || tasks_.front().small;
      };
      if (!urgent()) mutex_.AwaitFor(urgent, way_until_ - clock_.Monotonic());
      if (stopping_) return;
      task = tasks_.front();
      tasks_.pop_front();
    }
    const Progress progress = Go(task);
    if (progress == Progress::kDone) continue;
    MutexLock lock(&mutex_);
    tasks_.push_back(task);
    if (progress == Progress::kRetry) {
      mutex_.AwaitFor([this] { return stopping_; }, kRetry);
    }
  }
}

}  // namespace pelab::service
