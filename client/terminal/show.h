// Helpers that several commands share: finding jobs and sweeps, writing rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/options/options.h"
#include "client/source/data_source.h"
#include "core/render/json.h"

namespace pelab::client {

// The jobs that a command is about: one job by number or key prefix, or a sweep by name. `sweep`
// (--sweep) also accepts a sweep's number. `where` (--where) keeps only the jobs that meet the
// condition; without a job or sweep it selects from all jobs.
struct Target {
  v1::JobFilter filter;
  bool is_sweep = false;  // a sweep, or all jobs that meet a condition
  std::string title;      // "job 12", "sweep quick", "sweep quick where seed = 0"
};
// INVALID_ARGUMENT if both `name` and `sweep` are given, or if there is neither of them and no
// condition.
absl::Status CheckTargetNames(const std::string& name, const std::string& sweep,
                              const std::string& where = "");
absl::StatusOr<Target> FindTarget(DataSource& source, const std::string& name,
                                  const std::string& sweep, const std::string& where = "");

// The row of one job, without its spec; NOT_FOUND if there is none.
absl::StatusOr<v1::JobRow> FindJob(DataSource& source, const std::string& job);

// INVALID_ARGUMENT, with the known names, if the catalog has no such analysis.
absl::Status CheckAnalysisName(const std::string& flag, const std::string& name);

// "rope distance seed 0". With `varying`, the settings in which the jobs differ are added
// (results/varying.h): "rope distance seed 0 train.lr=0.0003".
std::string JobLabel(const v1::JobRow& job, const std::string& varying = "");

// One line, "computed by all 24: cpu, LibTorch 1.13.0", or the differences (results/computed_by.h).
// Empty if nothing is known, and for more than 10,000 jobs, whose attempts would take long to read.
absl::StatusOr<std::string> ComputedByLine(const Context& context, DataSource& source,
                                           const v1::JobFilter& filter,
                                           const results::JobList& jobs);

// "running"; "running (analysis)" for a trained job that only adds analyses; "diverged" for a job
// that succeeded but diverged.
std::string StateText(const v1::JobRow& job);

// The number of jobs in all states together.
std::uint64_t TotalOf(const v1::StateCounts& jobs);

// The JSON value that every command prints for a list of sweeps.
render::Json SweepsJson(const DataSource& source, const std::vector<v1::Sweep>& sweeps);

// Writes job rows with their specs, page by page, in any output format except the table.
absl::StatusOr<int> PutJobs(const Context& context, DataSource& source,
                            const v1::JobFilter& filter);
}  // namespace pelab::client
