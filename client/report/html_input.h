// The stored data that a report is made from, read once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "client/claims/judged_sheet.h"
#include "client/source/data_source.h"
#include "core/results/cells.h"
#include "core/results/job_list.h"
#include "core/results/variants.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// The accepted accuracies of a job, by epoch from 0; NaN for an epoch without a row.
struct JobCurve {
  std::vector<double> test;
  std::vector<double> train;
};

// A claim sheet that was settled on one of the sweeps.
struct ReportSheet {
  JudgedSheet judged;
  std::vector<v1::SheetClaimRow> rounds;  // its claims after every round
};

struct ReportInput {
  std::string source;  // DataSource::Description
  std::vector<v1::Sweep> sweeps;
  results::JobList jobs;     // of all sweeps, each job once, ordered by number
  results::CellTable cells;  // the groups of `jobs`, by test accuracy
  std::unordered_map<std::int64_t, JobCurve> curves;
  std::vector<v1::HeadAblationRow> heads;
  std::vector<v1::DepositRow> deposits;
  results::Variants variants;           // of the head ablations
  std::vector<v1::AnalysisRow> splits;  // the analyses split_accuracy
  std::vector<v1::AttemptRow> attempts;
  std::vector<ReportSheet> sheets;
};

// Reads the jobs of `sweeps` that meet the condition `where` (all jobs if it is empty). `progress`
// is told what is being read: "curves". NOT_FOUND if a sweep does not exist, or if no job meets
// `where`; INVALID_ARGUMENT without any sweep.
absl::StatusOr<ReportInput> ReadReportInput(DataSource& source,
                                            const std::vector<std::string>& sweeps,
                                            const std::string& where,
                                            const std::function<void(const char*)>& progress);

}  // namespace pelab::client
