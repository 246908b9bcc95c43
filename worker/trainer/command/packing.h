// Packing: trains jobs of one configuration, which differ only in their seed, as the members of one
// batch (parameters/members.h). Decides whether this is faster than one job after another and
// whether there is room.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/trainer/command/job_run.h"
#include "worker/trainer/command/workbench.h"

namespace pelab::trainer {

// Makes data and model of `width` members: the jobs and, if there are fewer, copies of the first
// job. With copies a job can be computed exactly as it was among others.
Workbench PackedBench(const std::vector<JobRun*>& jobs, std::int64_t width, at::Device device);

// Seconds per step and job.
struct StepSeconds {
  double alone = 0;
  double packed = 0;  // infinite if there is no room
};

struct Packing {
  std::int64_t width = 1;               // members per batch
  std::optional<StepSeconds> measured;  // if a measurement decided
};

// Whether a job's results have the same bits in a batch of any number of members. This is so on a
// CPU with 32-bit floats if the job, when alone, leaves no padding out (train/sections.h).
bool IsTheSameAlone(const Arguments& arguments, JobRun* job);

// Decides how to train the jobs (at least one): as the arguments say or, for `auto`, in the way
// that is faster here and now. Measures on temporary models and data like theirs. Throws
// TrainerError(kBadSpec) if the jobs do not have one configuration.
Packing ChoosePacking(const Arguments& arguments, const std::vector<JobRun*>& jobs);

}  // namespace pelab::trainer
