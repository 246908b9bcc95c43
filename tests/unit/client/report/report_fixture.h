#pragma once

#include <utility>
#include <vector>

#include "client/report/html_data.h"
#include "core/results/cells.h"

namespace pelab::client {

// The input of a report about the jobs `rows`, with their cells.
inline ReportInput InputOf(std::vector<v1::JobRow> rows) {
  ReportInput input;
  input.jobs = results::JobList(std::move(rows));
  input.cells = *results::BuildCells(input.jobs, "test_accuracy", {});
  return input;
}

}  // namespace pelab::client
