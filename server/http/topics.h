// What a stream of events tells of: all sweeps and workers, one sweep, or one job.
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
  std::int64_t id = 0;  // of the sweep or the job
};
inline bool operator<(const Topic& a, const Topic& b) {
  return std::tie(a.kind, a.id) < std::tie(b.kind, b.id);
}

// One row that a stream tells when it changes. A value.
struct Item {
  std::string event;  // "jobs"
  std::string key;    // what tells it from others of its event
  std::string json;   // on one line
};
// Items of one event stand together; an event without items has one with an empty key and `json`.
using Snapshot = std::vector<Item>;

// Everything that there is to tell now. Errors of db::Reader.
absl::StatusOr<Snapshot> Observe(const Topic& topic, db::Reader& reader, const Sources& sources);

// The server-sent events that lead from `before` to `now`; empty where nothing changed. An event's
// data is {"all": …, "rows": […]}: rows that are new or different; with `all` these are all there
// are, because it is the first time or because some have gone.
std::string EventsBetween(const Snapshot& before, const Snapshot& now, const std::string& id);

}  // namespace pelab::http
