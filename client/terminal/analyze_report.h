// The output of `pelab analyze`: the coordinator's answer, the progress, and the final report.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/command/analysis_plan.h"
#include "client/options/options.h"
#include "client/source/data_source.h"

namespace pelab::client {

// Prints the counts to standard output if the output is a table, and the reasons to standard error.
// Prints nothing for json and csv.
void PutAnswer(const Context& context, const AnalysisPlan& plan, const v1::AnalyzeResponse& answer);

// Waits until none of the plan's jobs is queued, assigned or running, with progress on standard
// error. `trained_only` ignores jobs that still have to be trained. CANCELLED if `canceller` (may
// be null) is cancelled.
absl::Status AwaitAnalyses(const Context& context, DataSource& source, const AnalysisPlan& plan,
                           bool trained_only, Canceller* canceller);

// Looks up what is stored now and reports it. Returns the exit status: 0 if every job has its
// analyses, else 3. For json and csv this prints the command's only value.
absl::StatusOr<int> ReportAnalyses(const Context& context, DataSource& source,
                                   const AnalysisPlan& plan, const v1::AnalyzeResponse& answer);

// Prints the command's only json or csv value when nobody waits for the analyses. Returns the exit
// status: 3 if some jobs cannot be analyzed, else 0.
int PutAnswerOnly(const Context& context, const AnalysisPlan& plan,
                  const v1::AnalyzeResponse& answer);

}  // namespace pelab::client
