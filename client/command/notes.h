// Notes about a sweep file that is valid: they are printed, and the command goes on.
#pragma once

#include "client/options.h"
#include "core/experiment/sweep.h"

namespace pelab::client {

// "note: …" a line, on standard error, so that every output stays what it is.
void PutNotes(const Context& context, const experiment::Sweep& sweep);

}  // namespace pelab::client
