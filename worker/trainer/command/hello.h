// A job's first event, and the settings that affect its results.
#pragma once

#include <cstdint>
#include <string>

#include "worker/trainer/command/job_run.h"
#include "worker/trainer/command/packing.h"
#include "worker/trainer/command/workbench.h"
#include "worker/trainer/protocol/arguments.h"

namespace pelab::trainer {

// The settings that change the last bits of the job's results, as text.
std::string ExecutionText(const Arguments& arguments, const Packing& packing, JobRun* job);

void EmitHello(const Arguments& arguments, const Packing& packing, const Workbench& bench,
               std::int64_t start_epoch, JobRun* job);

}  // namespace pelab::trainer
