// The counts shown when a sweep is submitted: "N new, M already stored, K in flight, F failed
// earlier".
#pragma once

#include "pelab/v1/common.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::db {

// The stored state of a job that a sweep asks for.
struct StoredJob {
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;  // unspecified: not stored
  bool lacks_analyses = false;  // it was trained, but lacks some of the sweep's analyses
  bool has_weights = false;     // its weights were kept, so analyses can be added
};

// Adds one job to `counts`. A cancelled job is queued again and counts as new; so does every job of
// a `fresh` submission. Pure: thread-safe.
void CountJob(const StoredJob& stored, bool fresh, v1::JobCounts& counts);

}  // namespace pelab::db
