// Records calls that were refused, in the audit table: at most a few a second each, the others as
// a number, so that refused callers cannot fill the disk.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "server/store/access_values.h"
#include "server/store/journal.h"

namespace pelab::access {

// Thread-safe; never blocks.
class Refusals {
 public:
  Refusals(const Clock& clock, store::Journal& journal) : clock_(clock), journal_(journal) {}

  // `refusal` has an outcome.
  void Add(store::RecordAct refusal);
  // Records how many were only counted in a second that is over. Call it about once a second.
  void Flush();
  // The same for all of them, when no further call is answered.
  void FlushAll();

 private:
  void FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Record(store::RecordAct refusal);

  const Clock& clock_;
  store::Journal& journal_;
  Mutex mutex_;
  std::int64_t second_ ABSL_GUARDED_BY(mutex_) = 0;
  int recorded_ ABSL_GUARDED_BY(mutex_) = 0;  // in that second
  std::int64_t only_counted_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pelab::access
