#include "core/views/job_counts.h"

namespace pelab::views {

void CountJob(v1::JobState stored, bool fresh, v1::JobCounts& counts) {
  counts.set_total(counts.total() + 1);
  switch (fresh ? v1::JOB_STATE_UNSPECIFIED : stored) {
    case v1::JOB_STATE_SUCCEEDED:
      return counts.set_stored(counts.stored() + 1);
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

}  // namespace pelab::views
