// The whole program except for `main`: reads the command line, runs one command and reports its
// error.
#pragma once

#include "client/options/options.h"

namespace pelab::client {

// Returns the exit status. `context` says where and how to write. This function fills in its
// options from the command line and from the environment variable PELAB_SERVER.
int RunPelab(int argc, const char* const* argv, Context& context);

}  // namespace pelab::client
