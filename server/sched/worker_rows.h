// Completes the database's rows of workers with what only the running coordinator knows.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "pelab/v1/results.pb.h"
#include "server/sched/scheduler.h"

namespace pelab::sched {

// Sets when each worker was last heard from and, if it has open attempts, how long until the first
// of them is lost unless the worker is heard from again. `now` is the wall clock. Pure.
void AddWorkerStatuses(const std::vector<WorkerStatus>& statuses, absl::Time now,
                       v1::ListWorkersResponse& response);

}  // namespace pelab::sched
