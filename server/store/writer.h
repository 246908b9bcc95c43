// The one thread that owns the writing connection. It takes the queued writes, commits them in one
// transaction, then calls back those who queued them. It also starts WAL checkpoints and moves
// staged epochs into their curves.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/alarm.h"
#include "core/base/mutex.h"
#include "server/store/journal.h"

namespace pelab::store {

struct WriterOptions {
  // Writes queue while a commit is under way. A write that comes later than `gather` after the last
  // commit is committed at once. Otherwise the writer waits until `gather` has passed since that
  // commit, so that more writes join the batch. It stops waiting at `batch_bytes`, or when a write
  // comes that somebody waits for: a submission, a slice of a sweep, an assignment, the end of an
  // attempt.
  absl::Duration gather = absl::Milliseconds(5);
  std::size_t batch_bytes = 1 << 20;
  std::size_t max_queued_bytes = 64 << 20;
  // A WAL checkpoint begins whenever the WAL has grown by so much. This counts what SQLite writes,
  // not what was queued: each commit writes whole pages, so that a small event takes 40 KB.
  std::int64_t checkpoint_bytes = 32 << 20;
  // Called on the writer thread with false when a commit fails after a successful one (a full or
  // failing disk), and with true when commits succeed again. Called before the callbacks of the
  // writes.
  std::function<void(bool works)> on_change;
  // Called on the writer thread after each commit, with the time that it took and its results, or
  // why nothing was stored. Must be quick. May be null.
  std::function<void(absl::Duration took, const absl::StatusOr<std::vector<ApplyResult>>& results)>
      on_commit;
};

class Writer final : public Journal {
 public:
  // From the first Append on, only this object's thread may use the store.
  explicit Writer(Store& store, const WriterOptions& options = {});
  // like Stop
  ~Writer() override;

  absl::Status Append(std::vector<Write> writes, Done done, Urgency urgency) override;

  // Commits what is queued, empties the WAL and ends the thread. Later appends are refused.
  void Stop();

  // Number of batches committed so far. Watchers compare it to notice changes.
  std::uint64_t commits() const { return commits_.load(std::memory_order_acquire); }
  // Approximate bytes of the writes that no commit has taken yet. Thread-safe.
  std::size_t queued_bytes() const {
    MutexLock lock(&mutex_);
    return queued_bytes_;
  }
  // Whether the last commit succeeded; true before the first. Thread-safe.
  bool works() const { return works_.load(std::memory_order_relaxed); }

 private:
  struct Request {
    std::vector<Write> writes;
    Done done;
    std::size_t bytes = 0;
  };

  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !queue_.empty() || !long_.empty();
  }
  bool Take(std::vector<Request>& batch);
  void Commit(std::vector<Request>& batch);
  void CheckpointIfDue();
  void Failed(const absl::Status& why);
  void Succeeded();

  Store& store_;
  const WriterOptions options_;
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<bool> works_{true};
  std::int64_t checkpointed_at_ = 0;  // bytes of the WAL when the last WAL checkpoint began
  // Whether no staged epochs are known to be left. Initially true: before the first commit the
  // store does not belong to this thread, so it must not look.
  bool tidy_ = true;
  // All waits use the monotonic clock, because the wall clock may be set.
  absl::Duration last_commit_ = -absl::InfiniteDuration();
  std::uint64_t failures_ = 0;  // commits in a row that failed
  absl::Duration failing_since_;
  absl::Duration failure_logged_;

  Alarm gathered_;  // ends the wait for more writes early
  mutable Mutex mutex_;
  std::deque<Request> queue_ ABSL_GUARDED_BY(mutex_);
  std::deque<Request> long_ ABSL_GUARDED_BY(mutex_);  // requests with a long write
  std::size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Whether to commit the queue without waiting for more.
  bool hurried_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::store
