// Notes for the person who submits a valid sweep. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/experiment/sweep.h"

namespace pelab::experiment {

// Each note is one or two sentences without a final full stop: "protocol clean keeps …". Looks at
// the sweep's combinations (at most kMaxCombinations). Notes about own encodings and data need what
// their files declare, so the sweep must be one that was parsed beside the files.
std::vector<std::string> NotesOn(const Sweep& sweep);

}  // namespace pelab::experiment
