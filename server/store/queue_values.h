// Writes that concern the queues in which pelab-scale starts workers (writes.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pelab::store {

// A queue as it is stored. Times are Unix milliseconds.
struct StoredQueue {
  std::string name;
  std::string settings_json;  // core/queues/settings.h
  std::string paused_reason;  // empty: it is not paused
  std::int64_t paused_at = 0;
  bool removing = false;  // it goes when none of its allocations waits
};

// Adds a queue, or replaces the settings of the queue with this name.
struct PutQueue {
  std::string name;
  std::string settings_json;
  std::int64_t now = 0;
};
// Pauses a queue, or ends its pause.
struct PauseQueue {
  std::string name;
  std::string reason;        // empty: the pause ends
  bool keep_reason = false;  // a queue that is paused already stays as it is
  std::int64_t now = 0;
};
// Removes a queue, or marks it as one that is being removed.
struct RemoveQueue {
  std::string name;
  bool mark = false;
  bool only_marked = false;  // a queue that is not marked stays
  std::int64_t now = 0;
};
struct QueueStored {
  enum Refusal {
    kNone,
    kUnknown,  // there is no such queue
    kTooMany,  // there are limits::kQueues others
  };
  Refusal refusal = kNone;  // not kNone: nothing is stored
  StoredQueue queue;        // as it is then, or was when it was removed
  bool removed = false;
};

}  // namespace pelab::store
