// Claims that state the same. Pure function: thread-safe.
#pragma once

#include <vector>

#include "core/claims/sheet.h"
#include "core/experiment/yaml_value.h"

namespace pelab::claims {

// Adds a violation for each claim that states what an earlier one does. Two claims state the same
// if all but their id, says and source is read as the same.
void RefuseTwins(const std::vector<Claim>& claims, experiment::Violations* violations);

}  // namespace pelab::claims
