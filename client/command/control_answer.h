// The answer of commands that change one sweep: pause, resume, priority, sweeps rename and note.
// As thread-safe as the context.
#pragma once

#include <string>

#include "client/options.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// Puts "sweep 1 quick: TEXT" out, or how the sweep stands as one JSON value or CSV row. Answers
// kExitOk.
int PutControl(const Context& context, const v1::SweepControl& control, const std::string& text);

}  // namespace pelab::client
