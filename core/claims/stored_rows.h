// Reads the rows that a sheet is judged on.
#pragma once

#include "absl/status/statusor.h"
#include "core/base/status.h"
#include "core/claims/outcomes.h"

namespace pelab::claims {

// The rows of the jobs that `filter` selects. `source` has the functions Jobs, EpochsTo, Attempts,
// Analyses, HeadAblations and Deposits, each of which returns the whole list or an error.
template <typename Source>
absl::StatusOr<StoredRows> LoadRows(Source& source, const v1::JobFilter& filter,
                                    const Sheet& sheet) {
  StoredRows rows;
  PELAB_ASSIGN_OR_RETURN(rows.jobs, source.Jobs(filter));
  for (const double accuracy : EpochsToOf(sheet)) {
    PELAB_ASSIGN_OR_RETURN(rows.epochs_to[accuracy], source.EpochsTo(filter, accuracy));
  }
  v1::JobFilter failed = filter;
  failed.add_states(v1::JOB_STATE_FAILED);
  PELAB_ASSIGN_OR_RETURN(rows.attempts, source.Attempts(failed));
  if (Needs(sheet, "split_accuracy")) {
    PELAB_ASSIGN_OR_RETURN(rows.splits, source.Analyses(filter, "split_accuracy"));
  }
  if (!Needs(sheet, "head_ablation")) return rows;
  PELAB_ASSIGN_OR_RETURN(rows.heads, source.HeadAblations(filter));
  PELAB_ASSIGN_OR_RETURN(rows.deposits, source.Deposits(filter));
  return rows;
}

}  // namespace pelab::claims
