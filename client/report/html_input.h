// What a report is made from, read once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "client/source/data_source.h"
#include "core/results/cells.h"
#include "core/results/job_list.h"
#include "core/results/variants.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// The accepted line of a job, by epoch from 0.
struct JobCurve {
  std::vector<double> test;
  std::vector<double> train;
};

struct ReportInput {
  std::string source;  // DataSource::Description
  std::vector<v1::Sweep> sweeps;
  results::JobList jobs;     // of all sweeps, each once, by job number
  results::CellTable cells;  // of `jobs`, by test accuracy
  std::unordered_map<std::int64_t, JobCurve> curves;
  std::vector<v1::HeadAblationRow> heads;
  std::vector<v1::DepositRow> deposits;
  results::Variants variants;  // of the head ablations
  std::vector<v1::AttemptRow> attempts;
};

// `progress` is told what is being read: "curves". NOT_FOUND for a sweep that is not there;
// INVALID_ARGUMENT for none.
// `where`: only of jobs that meet this condition; empty: of all.
absl::StatusOr<ReportInput> ReadReportInput(DataSource& source,
                                            const std::vector<std::string>& sweeps,
                                            const std::string& where,
                                            const std::function<void(const char*)>& progress);

}  // namespace pelab::client
