// Runs a short-lived program and takes its whole output.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/process.h"

namespace pelab::agent {

class PreloadedTrainer;

struct ProgramOutput {
  std::string out;  // whole lines
  std::string err;  // the last part
};

struct RunLimits {
  absl::Duration timeout;  // after it the program is killed
  std::size_t bytes = 0;   // of standard output
};

// Runs the program until it has ended with status 0. It does not get this process's token. An error
// begins with `what` ("squeue -j 7") and says what the program did instead, with the last part of
// its standard error. `preloaded`: starts the program if this is a trainer.
absl::StatusOr<ProgramOutput> RunProgram(SpawnOptions options, absl::string_view what,
                                         const RunLimits& limits,
                                         PreloadedTrainer* preloaded = nullptr);

}  // namespace pelab::agent
