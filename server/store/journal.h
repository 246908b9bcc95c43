// How the rest of the coordinator writes: queue values, be called when they are durable.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "server/store/store.h"
#include "server/store/writes.h"

namespace pelab::store {

class Journal {
 public:
  // The results of one Append, in its order, once all of it is durable; or why nothing is stored.
  // Runs on the writing thread: must not block.
  using Done = std::function<void(absl::StatusOr<std::vector<ApplyResult>>)>;

  enum class Urgency {
    kBounded,   // refused with RESOURCE_EXHAUSTED while too much is queued
    kInternal,  // the coordinator's own, whose number is bounded by what it manages
  };

  virtual ~Journal() = default;
  // Thread-safe. Appends are applied in the order of these calls, and `done` is called in it. Where
  // the answer is an error `done` is never called.
  virtual absl::Status Append(std::vector<Write> writes, Done done,
                              Urgency urgency = Urgency::kBounded) = 0;
};

}  // namespace pelab::store
