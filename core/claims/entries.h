// The kinds of claims and the metrics that claims may name, with a line of help each. Pure
// functions: thread-safe.
#pragma once

#include <vector>

#include "core/catalog/catalog.h"

namespace pelab::claims {

const std::vector<catalog::Entry>& KindEntries();
const std::vector<catalog::Entry>& MetricEntries();

}  // namespace pelab::claims
