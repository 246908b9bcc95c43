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

// Fills `options`, or returns the exit status with which main must end at once: 0 after --help or
// --version, 2 after printing one line about the error on standard error.
std::optional<int> ParseCommandLine(int argc, char** argv, ServerOptions& options);

}  // namespace pelab
