// The output of commands that change one sweep: pause, resume, priority, sweeps rename and sweeps
// note. As thread-safe as the context.
#pragma once

#include <string>

#include "client/options.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// Writes "sweep 1 quick: TEXT", or the sweep's control state as one JSON value or CSV row. Returns
// kExitOk.
int PutControl(const Context& context, const v1::SweepControl& control, const std::string& text);

}  // namespace pelab::client
