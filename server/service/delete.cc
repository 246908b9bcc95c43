// SweepsService: deleting a sweep. The first write hides it for good. Its jobs are deleted in
// slices, so that other writes are stored in between.
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "core/rpc/status.h"
#include "server/service/blocking.h"
#include "server/service/sweeps_service.h"

namespace pelab::service {
namespace {

// Interval of retries while a worker stops a job.
constexpr absl::Duration kPoll = absl::Milliseconds(50);

void Add(const store::SweepDeleted& part, v1::DeleteResponse& response) {
  response.set_jobs_deleted(response.jobs_deleted() + part.jobs_deleted);
  response.set_jobs_kept(response.jobs_kept() + part.jobs_kept);
  response.set_more(part.more);
}

absl::Status StillLive(const v1::Sweep& sweep) {
  return absl::FailedPreconditionError(
      absl::StrCat("sweep ", sweep.sweep_id(), " (", sweep.name(),
                   ") has not ended; cancel it first: pelab cancel ", sweep.sweep_id()));
}

}  // namespace

grpc::Status SweepsService::Delete(grpc::ServerContext* context, const v1::DeleteRequest* request,
                                   v1::DeleteResponse* response) {
  return rpc::ToGrpc(DoDelete(*context, *request, *response));
}

absl::StatusOr<store::SweepDeleted> SweepsService::Delete(store::Write write,
                                                          std::optional<store::RecordAct> act) {
  PELAB_ASSIGN_OR_RETURN(
      store::WriteResult result,
      AppendAndWait(
          parts_.writer, std::move(write),
          [this](const store::WriteResult& stored) {
            parts_.executor.Post(
                [this, cancelled = std::get<store::SweepDeleted>(stored).cancelled] {
                  parts_.scheduler.Cancelled(cancelled);
                });
          },
          std::move(act)));
  return std::get<store::SweepDeleted>(std::move(result));
}

absl::Status SweepsService::CountDeletion(const grpc::ServerContext& context, std::int64_t sweep_id,
                                          v1::DeleteResponse& response) {
  std::optional<std::int64_t> next = 0;
  while (next) {
    if (context.IsCancelled()) return absl::CancelledError("the client is gone");
    PELAB_ASSIGN_OR_RETURN(const store::WriteResult result,
                           AppendAndWait(parts_.writer, store::CountDeletion{sweep_id, *next}));
    const auto& counted = std::get<store::DeletionCounted>(result);
    response.set_jobs_deleted(response.jobs_deleted() + counted.jobs_deleted);
    response.set_jobs_kept(response.jobs_kept() + counted.jobs_kept);
    next = counted.next;
  }
  return absl::OkStatus();
}

absl::Status SweepsService::DoDelete(const grpc::ServerContext& context,
                                     const v1::DeleteRequest& request,
                                     v1::DeleteResponse& response) {
  const auto now = [this] { return absl::ToUnixMillis(parts_.clock.Wall()); };
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, OwnSweep(caller, request.sweep().sweep()));
  const std::int64_t sweep_id = sweep.sweep_id();
  response.set_sweep_id(sweep_id);
  response.set_name(sweep.name());
  if (request.dry_run()) {
    if (sweep.state() == v1::SWEEP_STATE_EXPANDING || sweep.state() == v1::SWEEP_STATE_ACTIVE) {
      return StillLive(sweep);
    }
    return CountDeletion(context, sweep_id, response);
  }
  PELAB_ASSIGN_OR_RETURN(const auto first,
                         Delete(store::DeleteSweep{sweep_id, now()},
                                caller.Act("Sweeps/Delete", access::Named(sweep))));
  if (!first.found) {
    return absl::NotFoundError(absl::StrCat("no sweep \"", request.sweep().sweep(), "\""));
  }
  if (first.live) return StillLive(sweep);
  Add(first, response);
  const absl::Duration end = parts_.clock.Monotonic() + kCallTime;
  bool waits = first.waits;
  while (response.more() && parts_.clock.Monotonic() < end && !context.IsCancelled()) {
    if (waits) absl::SleepFor(kPoll);
    const auto slice = Delete(store::DeleteSlice{sweep_id, now()});
    if (!slice.ok()) break;
    Add(*slice, response);
    waits = slice->waits;
  }
  if (response.more()) parts_.expander.Delete(sweep_id);
  return absl::OkStatus();
}

}  // namespace pelab::service
