// Builds the groups of job rows.
#pragma once

#include <vector>

#include "core/results/cells.h"

namespace pelab {

inline results::CellTable Cells(const std::vector<v1::JobRow>& jobs) {
  return *results::BuildCells(results::JobList(jobs), "test_accuracy", {});
}

}  // namespace pelab
