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
#include "core/results/metrics.h"
#include "core/stats/seeds.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

struct Cell {
  std::vector<std::string> values;  // one for every CellTable::columns
  std::vector<v1::JobRow> jobs;     // by job number, without their specs
  stats::SeedSummary summary;       // of the metric; of an accuracy, low and high are within 0 to 1
  std::vector<stats::SeedResult> results;  // by job
  std::string Label() const;               // "rope distance 0.0003"
};

struct CellTable {
  Metric metric;
  stats::IntervalKind interval = stats::IntervalKind::kStudentT;
  // "pe", "task", then the fields in which cells differ that agree in those.
  std::vector<std::string> columns;
  std::vector<Cell> cells;  // in the order of their first job
  // With --group-by: fields beside the seed that differ within a cell, over which its mean
  // therefore goes.
  std::vector<std::string> mixed;
  bool complete() const;
};

struct CellOptions {
  Metric metric;
  std::vector<std::string> group_by;     // empty: everything but the seed
  const MetricValues* values = nullptr;  // of a metric that is not of the job's row
  stats::IntervalKind interval = stats::IntervalKind::kStudentT;
};

// Only a succeeded job counts with its value. INVALID_ARGUMENT for an unknown field.
absl::StatusOr<CellTable> BuildCells(const JobList& jobs, const CellOptions& options);
// The same of a metric of the job's row; INVALID_ARGUMENT for an unknown one too.
absl::StatusOr<CellTable> BuildCells(const JobList& jobs, const std::string& metric,
                                     const std::vector<std::string>& group_by);

// What the job counts with.
stats::SeedResult ResultOf(const v1::JobRow& row, const Metric& metric,
                           const MetricValues* values = nullptr);

// A cell for each job, with its seed among the values: "rope distance seed 0".
void OneSeedEach(CellTable& table);

// "t" or "bootstrap".
std::string IntervalName(stats::IntervalKind kind);
// "mean of 3 seeds", "mean of 2 of 3 seeds"; empty for a cell of one.
std::string SeedsLabel(std::size_t with, std::size_t of);
// "complete", or "1 missing, 2 failed, 1 cancelled".
std::string MissingText(const stats::SeedSummary& summary);

// How many of its jobs diverged.
int DivergedOf(const Cell& cell);
// "diverged: rope distance 2 of 2, rope counting 1 of 2"; empty where no job did.
std::string DivergedText(const CellTable& table);
// Whether a job of it has not ended: then its mean will change.
bool IsOpen(const Cell& cell);

// {"pe": …, "task": …, "metric", "n", "missing", "failed", "complete", "mean", "sd", "half_width",
// "seeds", "job_ids", "interval", "low", "high", "cancelled", "not_reached", "median",
// "median_above", "diverged"}
render::Json ToJson(const CellTable& table, const Cell& cell);
std::vector<std::string> CellColumns(const CellTable& table);  // of the CSV

}  // namespace pelab::results
