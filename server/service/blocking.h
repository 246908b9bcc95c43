// Blocking waits for the coordinator's other threads. Use them only in calls that have a thread of
// their own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "server/sched/executor.h"
#include "server/store/journal.h"

namespace pelab::service {

// A write that is queued or being committed.
class PendingWrite {
 public:
  PendingWrite(store::Journal& journal, store::Write write,
               std::function<void(const store::WriteResult&)> then,
               std::optional<store::RecordAct> act = std::nullopt) {
    std::vector<store::Write> writes;
    writes.push_back(std::move(write));
    if (act) writes.emplace_back(*std::move(act));
    queued_ = journal.Append(std::move(writes),
                             [shared = shared_, then = std::move(then)](
                                 absl::StatusOr<std::vector<store::ApplyResult>> results) {
                               if (!results.ok()) {
                                 shared->result = results.status();
                               } else {
                                 shared->result = std::move(results->front());
                                 if (shared->result.ok() && then) then(*shared->result);
                               }
                               shared->done.Notify();
                             });
  }

  // Waits until the write is durable and returns its result. Call at most once.
  absl::StatusOr<store::WriteResult> Wait() {
    if (!queued_.ok()) return queued_;
    shared_->done.Wait();
    return std::move(shared_->result);
  }

 private:
  struct Shared {
    Notification done;
    absl::StatusOr<store::WriteResult> result = absl::UnknownError("");
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  absl::Status queued_;
};

// Queues one write and waits until it is durable. If the write succeeded, `then` runs on the writer
// thread before this returns. Use it for notifications that must be in the order of the commits.
// `act` records who does this, in the same transaction.
inline absl::StatusOr<store::WriteResult> AppendAndWait(
    store::Journal& journal, store::Write write,
    std::function<void(const store::WriteResult&)> then = nullptr,
    std::optional<store::RecordAct> act = std::nullopt) {
  return PendingWrite(journal, std::move(write), std::move(then), std::move(act)).Wait();
}

// Runs `ask` on the executor and returns its answer, or `otherwise` if the executor does not get
// to it within `timeout`. After `otherwise`, `ask` may still run: it must own what it uses, or use
// what outlives it.
template <typename T>
T AskOn(sched::Executor& executor, std::function<T()> ask, T otherwise,
        absl::Duration timeout = absl::Seconds(1)) {
  struct Shared {
    Notification done;
    T answer;
  };
  const auto shared = std::make_shared<Shared>();
  executor.Post([shared, ask = std::move(ask)] {
    shared->answer = ask();
    shared->done.Notify();
  });
  if (!shared->done.WaitFor(timeout)) return otherwise;
  return std::move(shared->answer);
}

}  // namespace pelab::service
