#include "server/sched/worker_rows.h"

#include <cstdint>
#include <map>
#include <string>

namespace pelab::sched {

void AddWorkerStatuses(const std::vector<WorkerStatus>& statuses, absl::Time now,
                       v1::ListWorkersResponse& response) {
  std::map<std::string, const WorkerStatus*> by_id;
  for (const WorkerStatus& status : statuses) by_id[status.worker_id] = &status;
  for (v1::WorkerRow& row : *response.mutable_workers()) {
    const auto found = by_id.find(row.worker_id());
    if (found == by_id.end()) continue;
    const WorkerStatus& status = *found->second;
    const std::int64_t silent = absl::ToInt64Milliseconds(status.silent);
    // The database is updated only now and then, so its time may be old.
    if (status.connected) row.set_last_seen_at_ms(absl::ToUnixMillis(now) - silent);
    if (!status.connected && !status.give_up_left) continue;
    if (status.time_left) {
      row.set_time_left_ms(
          static_cast<std::uint64_t>(absl::ToInt64Milliseconds(*status.time_left)));
    }
    row.set_silent_ms(static_cast<std::uint64_t>(silent));
    if (status.give_up_left) {
      row.set_lease_left_ms(
          static_cast<std::uint64_t>(absl::ToInt64Milliseconds(*status.give_up_left)));
    }
  }
}

}  // namespace pelab::sched
