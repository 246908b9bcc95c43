// What only a coordinator that runs knows of its workers, put into the rows of the database.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "pelab/v1/results.pb.h"
#include "server/sched/scheduler.h"

namespace pelab::sched {

// Sets when each worker was last heard of and, where it holds attempts, when they are given away
// unless it is heard of again. `now`: the wall clock. Pure.
void AddStandings(const std::vector<WorkerStanding>& standings, absl::Time now,
                  v1::ListWorkersResponse& response);

}  // namespace pelab::sched
