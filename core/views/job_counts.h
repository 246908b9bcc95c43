// "N new, M already stored, K in flight, F failed earlier": where a sweep's jobs stand when it is
// submitted.
#pragma once

#include "pelab/v1/common.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::views {

// Counts one job whose stored state is `stored` (JOB_STATE_UNSPECIFIED: there is none). Cancelled
// jobs are queued again and count as new, and so does every job of a `fresh` submission. Pure:
// thread-safe.
void CountJob(v1::JobState stored, bool fresh, v1::JobCounts& counts);

}  // namespace pelab::views
