// How the rest of the coordinator writes: it queues values and is called back when they are
// durable.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "server/store/store.h"
#include "server/store/writes.h"

namespace pelab::store {

class Journal {
 public:
  // Receives the results of one Append, in its order, once all of it is durable, or the reason why
  // nothing is stored. Runs on the writer thread, so it must not block.
  using Done = std::function<void(absl::StatusOr<std::vector<ApplyResult>>)>;

  enum class Urgency {
    kBounded,   // refused with RESOURCE_EXHAUSTED while too much is queued
    kInternal,  // the coordinator's own writes, whose number is bounded by what it manages
  };

  virtual ~Journal() = default;
  // Queues writes. Calls of Append are applied, and their `done` is called, in the order in which
  // they came. There is one exception: a call with a long write (IsLong) may be applied after later
  // calls that have none. Calls with long writes keep their order among themselves. A transaction
  // has at most one such call, so that nobody waits for several of them. If Append returns an
  // error, `done` is never called. Without writes, `done` is called in its turn, and nothing is
  // committed for it. Thread-safe.
  virtual absl::Status Append(std::vector<Write> writes, Done done,
                              Urgency urgency = Urgency::kBounded) = 0;
};

}  // namespace pelab::store
