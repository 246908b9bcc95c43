// What several commands share: looking things up and putting out rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/options.h"
#include "client/source/data_source.h"
#include "core/render/json.h"

namespace pelab::client {

// A job's number or key prefix, or a sweep's name; `sweep` (of --sweep) names a sweep by number
// too. `where` (of --where) leaves some of their jobs, or without either some of all jobs.
struct Target {
  v1::JobFilter filter;
  bool is_sweep = false;  // or several jobs by their condition
  std::string title;      // "job 12", "sweep quick", "sweep quick where seed = 0"
};
// INVALID_ARGUMENT unless exactly one is given, or none with a condition.
absl::Status CheckTargetNames(const std::string& name, const std::string& sweep,
                              const std::string& where = "");
absl::StatusOr<Target> FindTarget(DataSource& source, const std::string& name,
                                  const std::string& sweep, const std::string& where = "");

// A job's row, without its spec; NOT_FOUND.
absl::StatusOr<v1::JobRow> FindJob(DataSource& source, const std::string& job);

// INVALID_ARGUMENT, with what is known, for what is no analysis of the catalog.
absl::Status CheckAnalysisName(const std::string& flag, const std::string& name);

// "rope distance seed 0"; with `varying`, in what jobs differ beside that (results/varying.h),
// "rope distance seed 0 train.lr=0.0003".
std::string JobLabel(const v1::JobRow& job, const std::string& varying = "");

// "computed by all 24: cpu, LibTorch 1.13.0" as a line, or what differs (results/computed_by.h).
// Empty where nothing is known of the jobs, and of more than 10,000, whose attempts would take long
// to read.
absl::StatusOr<std::string> ComputedByLine(const Context& context, DataSource& source,
                                           const v1::JobFilter& filter,
                                           const results::JobList& jobs);

// "running"; of a job that was trained and only adds analyses "running (analysis)".
std::string StateText(const v1::JobRow& job);

// Of whatever state.
std::uint64_t TotalOf(const v1::StateCounts& jobs);

// JSON as one value. As JSON Lines it is on one line, or each row of its member `rows` is.
void PutJson(const Context& context, const render::Json& value, const std::string& rows = "");
// The rows of jobs with their specs, page by page, in any output but the table.
absl::StatusOr<int> PutJobs(const Context& context, DataSource& source,
                            const v1::JobFilter& filter);
// CSV with these columns.
void PutCsv(const Context& context, const std::vector<std::string>& columns,
            const render::Json& rows);

}  // namespace pelab::client
