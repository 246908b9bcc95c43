// The commands of pelab-scale, after its command line is read.
#pragma once

#include "absl/status/status.h"
#include "core/base/shutdown.h"
#include "worker/scale/options.h"

namespace pelab::scale {

// Runs the command. kRun goes on until `shutdown` is requested; while Slurm or the coordinator is
// away it waits. Errors say why it could not start or answer.
absl::Status Run(const ScaleOptions& options, ShutdownSignal& shutdown);

}  // namespace pelab::scale
