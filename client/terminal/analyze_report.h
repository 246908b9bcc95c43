// What `pelab analyze` shows: the answer, the waiting, the end.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/analysis_plan.h"
#include "client/options.h"
#include "client/source/data_source.h"

namespace pelab::client {

// The counts, on standard output where that is a table; reasons on standard error.
void PutAnswer(const Context& context, const AnalysisPlan& plan, const v1::AnalyzeResponse& answer);

// Follows the plan's jobs, with progress on standard error, until none of them is queued, assigned
// or running; `trained_only` leaves out those that are still to be trained. CANCELLED after
// `canceller`, which may be null.
absl::Status AwaitAnalyses(const Context& context, DataSource& source, const AnalysisPlan& plan,
                           bool trained_only, Canceller* canceller);

// Looks what is stored, says it, and is the exit status: 0 where every job has its analyses, else
// 3. Of json and csv this is the one value.
absl::StatusOr<int> ReportAnalyses(const Context& context, DataSource& source,
                                   const AnalysisPlan& plan, const v1::AnalyzeResponse& answer);

// The one value of json and csv where nobody waits.
int PutAnswerOnly(const Context& context, const AnalysisPlan& plan,
                  const v1::AnalyzeResponse& answer);

}  // namespace pelab::client
