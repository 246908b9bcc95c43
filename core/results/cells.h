// Combines jobs into groups: jobs that differ only in their seed are one group (`Cell` in code and
// JSON). Pure functions: thread-safe.
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

// One group: the results of one configuration over its seeds.
struct Cell {
  std::vector<std::string> values;  // one for each of CellTable::columns
  std::vector<v1::JobRow> jobs;     // by job number, without their specs
  stats::SeedSummary summary;  // for the metric; low and high of an accuracy are clipped to 0 … 1
  std::vector<stats::SeedResult> results;  // one for each of `jobs`
  std::vector<std::string> shown = {};     // `values` for people: with short hashes
  std::string Label() const;               // "rope distance 0.0003": `shown` as one text
};

struct CellTable {
  Metric metric;
  stats::IntervalKind interval = stats::IntervalKind::kStudentT;
  // "pe", "task", then the fields that tell groups with the same PE and task apart; or
  // CellOptions::group_by.
  std::vector<std::string> columns;
  std::vector<Cell> cells;  // in the order of their first job
  // With --group-by: the fields other than the seed that differ within a group, so that its mean
  // averages over them.
  std::vector<std::string> mixed;
  bool complete() const;
};

struct CellOptions {
  Metric metric;
  std::vector<std::string> group_by;     // empty: everything but the seed
  const MetricValues* values = nullptr;  // for a metric that is not a column of the job's row
  stats::IntervalKind interval = stats::IntervalKind::kStudentT;
};

// Builds the groups. Only jobs whose training succeeded contribute a value. INVALID_ARGUMENT for an
// unknown field.
absl::StatusOr<CellTable> BuildCells(const JobList& jobs, const CellOptions& options);
// The same for a metric of the job's row, given by name; INVALID_ARGUMENT also for an unknown
// metric.
absl::StatusOr<CellTable> BuildCells(const JobList& jobs, const std::string& metric,
                                     const std::vector<std::string>& group_by);

// The value of one job, or why it has none.
stats::SeedResult ResultOf(const v1::JobRow& row, const Metric& metric,
                           const MetricValues* values = nullptr);

// A fraction lies within 0 and 1, and the difference of two within -1 and 1, although an interval
// may extend beyond: cuts it at `least` and 1.
void ClipShare(stats::SeedSummary& summary, double least = 0);

// Splits the table into one group per job, with the seed among the values: "rope distance seed 0".
// Only for metrics of the job's row: values from curves and analyses become missing.
void OneSeedEach(CellTable& table);

// "t" or "bootstrap".
std::string IntervalName(stats::IntervalKind kind);
// "mean of 3 seeds", "mean of 2 of 3 seeds"; empty for a group of one seed.
std::string SeedsLabel(std::size_t with, std::size_t of);
// "complete", or "1 missing, 2 failed, 1 cancelled".
std::string MissingText(const stats::SeedSummary& summary);

// How many of the group's jobs diverged.
int DivergedOf(const Cell& cell);
// "diverged: rope distance 2 of 2, rope counting 1 of 2"; empty if no job diverged.
std::string DivergedText(const CellTable& table);
// Whether one of the group's jobs is not trained yet but may still be trained, which would change
// the mean.
bool IsOpen(const Cell& cell);

// {"pe": …, "task": …, "metric", "n", "missing", "failed", "complete", "mean", "sd", "half_width",
// "seeds", "job_ids", "interval", "low", "high", "cancelled", "not_reached", "median",
// "median_above", "diverged"}
render::Json ToJson(const CellTable& table, const Cell& cell);
std::vector<std::string> CellColumns(const CellTable& table);  // columns of the CSV

}  // namespace pelab::results
