// The whole program behind main: reads the command line, runs one command, reports its error.
#pragma once

#include "client/options.h"

namespace pelab::client {

// Returns the exit status. `context` says where to write and how; its options are set from the
// command line and the environment variable PELAB_SERVER.
int RunPelab(int argc, const char* const* argv, Context& context);

}  // namespace pelab::client
