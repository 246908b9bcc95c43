// Waiting for the coordinator's other threads, for calls that have a thread of their own.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "server/sched/executor.h"
#include "server/store/journal.h"

namespace pelab::service {

// A write that is on its way.
class PendingWrite {
 public:
  PendingWrite(store::Journal& journal, store::Write write,
               std::function<void(const store::WriteResult&)> then) {
    std::vector<store::Write> writes;
    writes.push_back(std::move(write));
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

  // The result, once it is durable. Once.
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

// One write and its result, once it is durable. `then` runs on the writing thread before that: what
// has to be told in the order of the commits.
inline absl::StatusOr<store::WriteResult> AppendAndWait(
    store::Journal& journal, store::Write write,
    std::function<void(const store::WriteResult&)> then = nullptr) {
  return PendingWrite(journal, std::move(write), std::move(then)).Wait();
}

// What `ask` answers on the executor; `otherwise` where it does not come to it within `timeout`.
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
