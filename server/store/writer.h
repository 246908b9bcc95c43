// The one thread that owns the writing connection. It takes what has queued, commits it once, then
// tells those who asked; it also has the WAL moved into the file, and epochs into their curves.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "server/store/journal.h"

namespace pelab::store {

struct WriterOptions {
  // While a commit is under way others queue; beyond that nothing is waited for when the queue was
  // empty. In between, a batch is gathered for this long or up to so many bytes, or until something
  // comes that somebody waits for: a submit, a slice of a sweep, an assignment.
  absl::Duration gather = absl::Milliseconds(5);
  std::size_t batch_bytes = 1 << 20;
  std::size_t max_queued_bytes = 64 << 20;
  std::uint64_t checkpoint_bytes = 4 << 20;  // written since the last checkpoint
  // Told on the writing thread when a commit fails after one that went well (false: a full disk, a
  // failing one) and when one goes well again (true), before those who asked for it.
  std::function<void(bool works)> on_change;
};

class Writer final : public Journal {
 public:
  // From the first Append on the store is this thread's.
  explicit Writer(Store& store, const WriterOptions& options = {});
  // Stops as Stop does.
  ~Writer() override;

  absl::Status Append(std::vector<Write> writes, Done done, Urgency urgency) override;

  // Commits what is queued, empties the WAL and ends the thread; later appends are refused.
  void Stop();

  // How many commits changed something: what watchers compare.
  std::uint64_t commits() const { return commits_.load(std::memory_order_acquire); }

 private:
  struct Request {
    std::vector<Write> writes;
    Done done;
    std::size_t bytes = 0;
  };

  // An end of the gathering before its time.
  class Alarm {
   public:
    void Reset() { Set(false); }
    void Wake() { Set(true); }
    void WaitFor(absl::Duration timeout) {
      MutexLock lock(&mutex_);
      mutex_.AwaitFor([this] { return rung_; }, timeout);
    }

   private:
    void Set(bool rung) {
      MutexLock lock(&mutex_);
      rung_ = rung;
    }

    Mutex mutex_;
    bool rung_ ABSL_GUARDED_BY(mutex_) = false;
  };

  void Run();
  bool Take(std::vector<Request>& batch);
  void Commit(std::vector<Request>& batch);
  void Failed(const absl::Status& why);
  void Succeeded();

  Store& store_;
  const WriterOptions options_;
  std::atomic<std::uint64_t> commits_{0};
  std::uint64_t since_checkpoint_ = 0;
  // No epochs wait to be moved, as far as is known; and before the first commit the store is not this
  // thread's to look.
  bool tidy_ = true;
  // On the monotonic clock, as all that is waited for: the other one is set now and then.
  absl::Duration last_commit_ = -absl::InfiniteDuration();
  std::uint64_t failures_ = 0;  // in a row
  absl::Duration failing_since_;
  absl::Duration failure_logged_;

  Alarm gathered_;
  Mutex mutex_;
  std::deque<Request> queue_ ABSL_GUARDED_BY(mutex_);
  std::size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool hurried_ ABSL_GUARDED_BY(mutex_) = false;  // what is queued is not to be gathered
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::store
