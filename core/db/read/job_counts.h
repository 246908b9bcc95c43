// "N new, M already stored, K in flight, F failed earlier": where a sweep's jobs stand when it is
// submitted.
#pragma once

#include "pelab/v1/common.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::db {

// What is stored of a job when a sweep asks for it.
struct StoredJob {
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;  // unspecified: nothing
  bool lacks_analyses = false;  // it was trained, without some of the sweep's analyses
  bool has_weights = false;     // they were kept, so that analyses can be added
};

// Counts one job. Cancelled jobs are queued again and count as new, and so does every job of a `fresh` submission. Pure:
// thread-safe.
void CountJob(const StoredJob& stored, bool fresh, v1::JobCounts& counts);

}  // namespace pelab::db
