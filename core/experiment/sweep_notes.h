// What whoever submits a sweep should know although nothing is wrong with it. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/experiment/sweep.h"

namespace pelab::experiment {

// One sentence or two each, without a full stop at the end: "protocol clean keeps …". Looks at every
// combination of the sweep until there is something to say, at most kMaxCombinations.
std::vector<std::string> NotesOn(const Sweep& sweep);

}  // namespace pelab::experiment
