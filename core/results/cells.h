// Jobs put together into cells: what differs only in its seed is one cell. Pure functions:
// thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/render/json.h"
#include "core/results/job_list.h"
#include "core/stats/seeds.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

struct Cell {
  std::vector<std::string> values;  // one for every CellTable::columns
  std::vector<v1::JobRow> jobs;     // by job number, without their specs
  stats::SeedSummary summary;       // of the metric
  std::string Label() const;        // "rope distance 0.0003"
};

struct CellTable {
  std::string metric;
  // "pe", "task", then the fields in which cells differ that agree in those.
  std::vector<std::string> columns;
  std::vector<Cell> cells;  // in the order of their first job
  // With --group-by: fields beside the seed that differ within a cell, over which its mean
  // therefore goes.
  std::vector<std::string> mixed;
  bool complete() const;
};

// The metrics that a cell can have: numbers of a job row.
const std::vector<std::string>& Metrics();

// Only a succeeded job counts with its value. `group_by` empty: everything but the seed.
// INVALID_ARGUMENT for an unknown metric or field.
absl::StatusOr<CellTable> BuildCells(const JobList& jobs, const std::string& metric,
                                     const std::vector<std::string>& group_by);

// A cell for each job, with its seed among the values: "rope distance seed 0".
void OneSeedEach(CellTable& table);

// "mean of 3 seeds", "mean of 2 of 3 seeds"; empty for a cell of one.
std::string SeedsLabel(std::size_t with, std::size_t of);
// "complete", or "1 missing, 2 failed".
std::string MissingText(const stats::SeedSummary& summary);

// {"pe": …, "task": …, "n", "missing", "failed", "complete", "mean", "sd", "half_width", "seeds",
// "job_ids"}
render::Json ToJson(const CellTable& table, const Cell& cell);
std::vector<std::string> CellColumns(const CellTable& table);  // of the CSV

}  // namespace pelab::results
