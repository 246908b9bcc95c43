// Notes about a valid sweep file: the command prints them and continues.
#pragma once

#include "client/options/options.h"
#include "core/experiment/sweep.h"

namespace pelab::client {

// Writes one line "note: …" per note to standard error, so that standard output is unaffected.
void PutNotes(const Context& context, const experiment::Sweep& sweep);

}  // namespace pelab::client
