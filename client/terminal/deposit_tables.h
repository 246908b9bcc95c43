// Deposit indices as a table. A pure function: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/terminal/style.h"
#include "core/results/cells.h"
#include "core/results/deposits.h"

namespace pelab::client {

// A table for each variant; cells that have none are in every one.
std::string DepositTableText(const results::CellTable& cells,
                             const std::vector<results::DepositGroup>& groups,
                             const render::Style& style);

}  // namespace pelab::client
