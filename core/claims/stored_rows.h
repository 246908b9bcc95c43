// Reads the rows that a sheet is judged on.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/base/status.h"
#include "core/base/strings.h"
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
  for (const std::string_view analysis : AnalysesOf(sheet)) {
    if (analysis == "head_ablation") {
      PELAB_ASSIGN_OR_RETURN(rows.heads, source.HeadAblations(filter));
      PELAB_ASSIGN_OR_RETURN(rows.deposits, source.Deposits(filter));
    } else {
      PELAB_ASSIGN_OR_RETURN(rows.analyses[analysis],
                             source.Analyses(filter, std::string(analysis)));
    }
  }
  return rows;
}

inline bool HasEnded(const v1::JobRow& row) {
  return row.state() == v1::JOB_STATE_SUCCEEDED || row.state() == v1::JOB_STATE_FAILED ||
         row.state() == v1::JOB_STATE_CANCELLED;
}

// The rows of a registered sheet: the own jobs of its sweep. A later generation of a job does not
// count for the sheet. `source` also needs Artifacts.
template <typename Source>
absl::StatusOr<StoredRows> LoadOwnRows(Source& source, std::int64_t sweep_id, const Sheet& sheet) {
  v1::JobFilter filter;
  filter.set_sweep(Concat(sweep_id));
  filter.set_own_jobs(true);
  PELAB_ASSIGN_OR_RETURN(StoredRows rows, LoadRows(source, filter, sheet));
  if (AnalysesOf(sheet).empty()) return rows;
  // Read after the jobs: the weights of a job are stored before it ends.
  PELAB_ASSIGN_OR_RETURN(const auto artifacts, source.Artifacts(filter));
  for (const v1::JobRow& row : rows.jobs) {
    if (row.trained() && HasEnded(row)) rows.without_weights.insert(row.job_id());
  }
  for (const v1::ArtifactRow& artifact : artifacts) {
    if (artifact.name() == "weights.safetensors") rows.without_weights.erase(artifact.job_id());
  }
  return rows;
}

}  // namespace pelab::claims
