// The question of a worker to Slurm about the job that it runs in.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace pelab::agent {

// Parses what `squeue -h -o %L` prints: "4-02:30:00", "2:30:00", "45:10", "59", "UNLIMITED"
// (infinite). INVALID_ARGUMENT for anything else, also for "INVALID" and "NOT_SET".
absl::StatusOr<absl::Duration> ParseSlurmTime(absl::string_view text);

// The time that is left of the Slurm job that this process belongs to; infinite if the job has no
// limit. Slurm sets no variable for it, so `squeue` is asked. If it does not say, as when slurmctld
// is away, a warning is logged and the time is infinite: a worker that ended because of that would
// count as a failed allocation. FAILED_PRECONDITION outside a Slurm job, NOT_FOUND without squeue.
absl::StatusOr<absl::Duration> SlurmTimeLeft();

}  // namespace pelab::agent
