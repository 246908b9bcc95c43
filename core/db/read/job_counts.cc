#include "core/db/read/job_counts.h"

namespace pelab::db {

void CountJob(const StoredJob& stored, bool fresh, v1::JobCounts& counts) {
  counts.set_total(counts.total() + 1);
  switch (fresh ? v1::JOB_STATE_UNSPECIFIED : stored.state) {
    case v1::JOB_STATE_SUCCEEDED:
      counts.set_stored(counts.stored() + 1);
      if (!stored.lacks_analyses) return;
      if (stored.has_weights) return counts.set_analysis_jobs(counts.analysis_jobs() + 1);
      return counts.set_analysis_impossible(counts.analysis_impossible() + 1);
    case v1::JOB_STATE_FAILED:
      return counts.set_failed_earlier(counts.failed_earlier() + 1);
    case v1::JOB_STATE_QUEUED:
    case v1::JOB_STATE_ASSIGNED:
    case v1::JOB_STATE_RUNNING:
      return counts.set_in_flight(counts.in_flight() + 1);
    default:
      return counts.set_new_jobs(counts.new_jobs() + 1);
  }
}

}  // namespace pelab::db
