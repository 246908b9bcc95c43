// Jobs of one configuration, which differ in their seed alone, as the members of one batch (model/members.h): whether that is
// quicker than one after another, and whether there is room.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/trainer/command/job_run.h"
#include "worker/trainer/command/workbench.h"

namespace pelab::trainer {

// A job's data and model of `width` members: the jobs', and copies of the first where they are fewer, so that a job can be
// computed as it was among others.
Workbench PackedBench(const std::vector<JobRun*>& jobs, std::int64_t width, at::Device device);

// Seconds of a step, for each job.
struct StepSeconds {
  double alone = 0;
  double packed = 0;  // infinite where there is no room
};

struct Packing {
  std::int64_t width = 1;               // members of a batch
  std::optional<StepSeconds> measured;  // where that decided
};

// Whether a job's results have the same bits however many it is computed with: on a CPU in 32-bit floats, where alone it leaves no
// padding out (train/sections.h).
bool IsTheSameAlone(const Arguments& arguments, JobRun* job);

// How the jobs, at least one, are to be trained: as the arguments say, or, for `auto`, as is quicker here now. Measures on
// models and data like theirs, which are thrown away. Throws TrainerError(kBadSpec) where they are not of one configuration.
Packing ChoosePacking(const Arguments& arguments, const std::vector<JobRun*>& jobs);

}  // namespace pelab::trainer
