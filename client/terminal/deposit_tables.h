// A table of deposit indices. A pure function: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/terminal/style.h"
#include "core/results/cells.h"
#include "core/results/deposits.h"

namespace pelab::client {

// One table per variant. Groups without any variant appear in every table.
std::string DepositTableText(const results::CellTable& cells,
                             const std::vector<results::DepositGroup>& groups,
                             const render::Style& style);

}  // namespace pelab::client
