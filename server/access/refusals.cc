#include "server/access/refusals.h"

#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/limits.h"

namespace pelab::access {

void Refusals::Add(store::RecordAct refusal) {
  const std::int64_t second = absl::ToUnixSeconds(clock_.Wall());
  {
    MutexLock lock(&mutex_);
    if (second != second_) {
      FlushLocked();
      second_ = second;
      recorded_ = 0;
    }
    if (recorded_ == limits::kRefusalsRecorded) {
      only_counted_ += 1;
      return;
    }
    recorded_ += 1;
  }
  Record(std::move(refusal));
}

void Refusals::Flush() {
  MutexLock lock(&mutex_);
  if (absl::ToUnixSeconds(clock_.Wall()) != second_) FlushLocked();
}

void Refusals::FlushAll() {
  MutexLock lock(&mutex_);
  FlushLocked();
}

void Refusals::FlushLocked() {
  if (only_counted_ == 0) return;
  Record({.at = absl::ToUnixMillis(clock_.Wall()),
          .outcome = "REFUSED",
          .count = std::exchange(only_counted_, 0)});
}

// A refusal may go unrecorded while the queue of writes is full.
void Refusals::Record(store::RecordAct refusal) {
  std::vector<store::Write> writes;
  writes.emplace_back(std::move(refusal));
  (void)journal_.Append(
      std::move(writes), [](const auto&) {}, store::Journal::Urgency::kBounded);
}

}  // namespace pelab::access
