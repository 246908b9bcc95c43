// What a command that takes a sweep file says about it although nothing is wrong.
#pragma once

#include "client/options.h"
#include "core/spec/sweep.h"

namespace pelab::client {

// "note: …" a line, on standard error, so that every output stays what it is.
void PutNotes(const Context& context, const spec::Sweep& sweep);

}  // namespace pelab::client
