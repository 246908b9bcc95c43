#include "server/sched/worker_rows.h"

#include <cstdint>
#include <map>
#include <string>

namespace pelab::sched {

void AddStandings(const std::vector<WorkerStanding>& standings, absl::Time now,
                  v1::ListWorkersResponse& response) {
  std::map<std::string, const WorkerStanding*> by_id;
  for (const WorkerStanding& standing : standings) by_id[standing.worker_id] = &standing;
  for (v1::WorkerRow& row : *response.mutable_workers()) {
    const auto found = by_id.find(row.worker_id());
    if (found == by_id.end()) continue;
    const WorkerStanding& standing = *found->second;
    const std::int64_t silent = absl::ToInt64Milliseconds(standing.silent);
    // The database is updated only now and then, so its time may be old.
    if (standing.connected) row.set_last_seen_at_ms(absl::ToUnixMillis(now) - silent);
    if (!standing.connected && !standing.give_up_left) continue;
    row.set_silent_ms(static_cast<std::uint64_t>(silent));
    if (standing.give_up_left) {
      row.set_lease_left_ms(
          static_cast<std::uint64_t>(absl::ToInt64Milliseconds(*standing.give_up_left)));
    }
  }
}

}  // namespace pelab::sched
