// pelab-server's command line.
#pragma once

#include <optional>
#include <string>

#include "core/base/logging.h"
#include "server/coordinator.h"

namespace pelab {

struct ServerOptions {
  CoordinatorOptions coordinator;
  LogOptions log;
  int parent_fd = -1;
};

// Sets `options`, or answers the exit status with which main has to end at once: 0 after --help or
// --version, 2 after one line on standard error that says what is wrong.
std::optional<int> ParseCommandLine(int argc, char** argv, ServerOptions& options);

}  // namespace pelab
