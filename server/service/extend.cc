// SweepsService: adding seeds to a sweep.
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/rpc/status.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/preview.h"
#include "server/service/sweeps_service.h"
#include "server/stored_sweep.h"

namespace pelab::service {
namespace {

constexpr int kTries = 10;  // retries if others extend the same sweep at the same time

absl::StatusOr<experiment::Extension> Extended(const v1::Sweep& row, const experiment::Sweep& sweep,
                                               const std::string& seeds) {
  if (row.state() == v1::SWEEP_STATE_CANCELLED) {
    return absl::FailedPreconditionError(
        absl::StrCat("sweep ", row.sweep_id(), " (", row.name(),
                     ") is cancelled; submit its document again, which reopens it, and then extend "
                     "it: what is stored is not trained again"));
  }
  if (row.extensions_size() >= limits::kExtensions) {
    return absl::FailedPreconditionError(
        absl::StrCat("sweep ", row.sweep_id(), " was extended ", row.extensions_size(),
                     " times; allowed: ", limits::kExtensions,
                     "; submit its document under another name with the seeds that you want"));
  }
  experiment::Extension extension = experiment::Extend(sweep, seeds);
  if (!extension.sweep) return absl::InvalidArgumentError(extension.problem);
  std::size_t bytes = extension.seeds.size();
  for (const std::string& earlier : row.extensions()) bytes += earlier.size();
  if (bytes > limits::kSeedsBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("the seeds that were added to sweep ", row.sweep_id(), " (", row.name(),
                     ") would have ", bytes, " characters; allowed: ", limits::kSeedsBytes,
                     "; submit its document under another name with the seeds that you want"));
  }
  return extension;
}

// Subtracts the counts in `before`.
void SetDifference(const v1::JobCounts& before, v1::JobCounts& counts) {
  counts.set_total(counts.total() - before.total());
  counts.set_new_jobs(counts.new_jobs() - before.new_jobs());
  counts.set_stored(counts.stored() - before.stored());
  counts.set_in_flight(counts.in_flight() - before.in_flight());
  counts.set_failed_earlier(counts.failed_earlier() - before.failed_earlier());
  counts.set_analysis_jobs(counts.analysis_jobs() - before.analysis_jobs());
  counts.set_analysis_impossible(counts.analysis_impossible() - before.analysis_impossible());
}

}  // namespace

grpc::Status SweepsService::Extend(grpc::ServerContext* context, const v1::ExtendRequest* request,
                                   v1::ExtendResponse* response) {
  return rpc::ToGrpc(DoExtend(*context, *request, *response));
}

absl::Status SweepsService::DoExtend(const grpc::ServerContext& context,
                                     const v1::ExtendRequest& request,
                                     v1::ExtendResponse& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  if (request.seeds().size() > limits::kSeedsBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the seeds are ", request.seeds().size(),
                     " characters long; allowed: ", limits::kSeedsBytes));
  }
  PELAB_ASSIGN_OR_RETURN(std::optional<Turns::Turn> turn, parts_.admission.Document(context));
  for (int i = 0; i < kTries; ++i) {
    PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep row, OwnSweep(caller, request.sweep().sweep()));
    PELAB_ASSIGN_OR_RETURN(const experiment::Sweep sweep, RebuildSweep(row));
    PELAB_ASSIGN_OR_RETURN(experiment::Extension extension, Extended(row, sweep, request.seeds()));
    response.set_sweep_id(row.sweep_id());
    response.set_name(row.name());
    response.set_new_seeds(extension.seeds);
    response.set_cells(extension.sweep->cells() - sweep.cells());
    response.set_expanded(true);
    if (extension.seeds.empty()) return absl::OkStatus();
    if (request.dry_run()) {
      v1::PreviewResponse preview;
      PELAB_RETURN_IF_ERROR(PreviewCells(context, *turn, *reader, *extension.sweep, sweep.cells(),
                                         /*fresh=*/false, /*max_jobs=*/0, preview));
      *response.mutable_counts() = preview.counts();
      return absl::OkStatus();
    }
    PELAB_ASSIGN_OR_RETURN(
        const store::WriteResult result,
        AppendAndWait(
            parts_.writer,
            store::ExtendSweep{.sweep_id = row.sweep_id(),
                               .known = static_cast<std::size_t>(row.extensions_size()),
                               .seeds = extension.seeds,
                               .cells = extension.sweep->cells(),
                               .max_queued = caller.limits.max_queued()},
            [this](const store::WriteResult& stored) {
              parts_.executor.Post([this, jobs = std::get<store::SweepExtended>(stored).jobs] {
                parts_.scheduler.Expanded(jobs);
              });
            },
            caller.Act("Sweeps/Extend",
                       absl::StrCat(access::Named(row), ", seeds ", extension.seeds))));
    const auto& extended = std::get<store::SweepExtended>(result);
    if (extended.full) {
      return QueueIsFull(row.owner(), extended.queued, caller.limits.max_queued());
    }
    if (!extended.applied) continue;
    turn.reset();  // what follows waits for others, and reads little
    parts_.expander.Add(row.sweep_id(), *std::move(extension.sweep), extended.expanded);
    // If the sweep was still being expanded, its counts cannot separate the new cells from the
    // others.
    const bool whole = extended.expanded == sweep.cells();
    response.set_expanded(whole && response.cells() <= kSmallSweep &&
                          parts_.expander.WaitFor(row.sweep_id(), kSmallSweepTime));
    if (!response.expanded()) return absl::OkStatus();
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep now, reader->GetSweepRow(absl::StrCat(row.sweep_id())));
    *response.mutable_counts() = now.counts();
    SetDifference(row.counts(), *response.mutable_counts());
    return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat("sweep \"", request.sweep().sweep(),
                                         "\" is being changed by others; try again"));
}

}  // namespace pelab::service
