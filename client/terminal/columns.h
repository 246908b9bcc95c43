// The columns that tables about cells begin with. A pure function: thread-safe.
#pragma once

#include <vector>

#include "client/terminal/table.h"
#include "core/results/cells.h"

namespace pelab::client {

// The columns that name a cell; those that may be long shrink.
std::vector<render::Column> LeadingColumns(const results::CellTable& table);

}  // namespace pelab::client
