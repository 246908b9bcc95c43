// The topics of event streams: all sweeps and workers, one sweep, or one job.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "core/db/read/reader.h"
#include "server/http/api.h"

namespace pelab::http {

struct Topic {
  enum class Kind { kAll, kSweep, kJob };
  Kind kind = Kind::kAll;
  std::int64_t id = 0;  // number of the sweep or job
};
inline bool operator<(const Topic& a, const Topic& b) {
  return std::tie(a.kind, a.id) < std::tie(b.kind, b.id);
}

// One row of a topic; a stream sends it when it changes. A value.
struct Item {
  std::string event;  // name of the event: "jobs"
  std::string key;    // identifies the row among those of its event
  std::string json;   // on one line
};
// Items of one event are adjacent. An event without rows has one item with empty `key` and `json`.
using Snapshot = std::vector<Item>;

// Reads the topic's current state. Errors of db::Reader.
absl::StatusOr<Snapshot> Observe(const Topic& topic, db::Reader& reader, const Sources& sources);

// The server-sent events that lead from `before` to `now`; empty if nothing changed. The data of an
// event is {"all": …, "rows": […]}. `rows` are the rows that are new or different. If `all` is
// true, they are all rows, because this is the first event or because some rows have disappeared.
std::string EventsBetween(const Snapshot& before, const Snapshot& now, const std::string& id);

}  // namespace pelab::http
