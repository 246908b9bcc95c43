// The leading columns of tables about groups. A pure function: thread-safe.
#pragma once

#include <vector>

#include "client/terminal/table.h"
#include "core/results/cells.h"

namespace pelab::client {

// The columns that identify a group; columns that may hold long texts shrink.
std::vector<render::Column> LeadingColumns(const results::CellTable& table);

}  // namespace pelab::client
