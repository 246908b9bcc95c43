// SweepsService: cancel, pause, priority and retry, while sweeps run. Long changes are split into
// slices, so that other writes are stored in between.
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/rpc/status.h"
#include "server/service/blocking.h"
#include "server/service/sweeps_service.h"

namespace pelab::service {
namespace {

void Add(const store::Cancelled& part, v1::CancelResponse& response) {
  response.set_claims_withdrawn(response.claims_withdrawn() + part.claims_withdrawn);
  response.set_jobs_cancelled(response.jobs_cancelled() + part.jobs.size());
  response.set_more(part.more);
}

absl::StatusOr<std::int64_t> ReadPosition(const std::string& after) {
  std::int64_t position = 0;
  if (after.empty() || (absl::SimpleAtoi(after, &position) && position >= 0)) return position;
  return absl::InvalidArgumentError(
      absl::StrCat("position \"", Shorten(after, 80), "\" is not one of an answer"));
}

}  // namespace

absl::Status CheckPriority(int priority) {
  if (priority >= -1000 && priority <= 1000) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("priority ", priority, " is out of range; allowed: -1000 to 1000"));
}

grpc::Status SweepsService::Cancel(grpc::ServerContext* context, const v1::CancelRequest* request,
                                   v1::CancelResponse* response) {
  return rpc::ToGrpc(DoCancel(*context, *request, *response));
}
grpc::Status SweepsService::Pause(grpc::ServerContext* context, const v1::PauseRequest* request,
                                  v1::SweepControl* response) {
  return rpc::ToGrpc(
      DoControl(*context, "Sweeps/Pause", request->sweep().sweep(), {.paused = true}, *response));
}
grpc::Status SweepsService::Resume(grpc::ServerContext* context, const v1::ResumeRequest* request,
                                   v1::SweepControl* response) {
  return rpc::ToGrpc(
      DoControl(*context, "Sweeps/Resume", request->sweep().sweep(), {.paused = false}, *response));
}
grpc::Status SweepsService::SetPriority(grpc::ServerContext* context,
                                        const v1::SetPriorityRequest* request,
                                        v1::SweepControl* response) {
  if (absl::Status status = CheckPriority(request->priority()); !status.ok()) {
    return rpc::ToGrpc(status);
  }
  return rpc::ToGrpc(DoControl(*context, "Sweeps/SetPriority", request->sweep().sweep(),
                               {.priority = request->priority()}, *response));
}
grpc::Status SweepsService::Retry(grpc::ServerContext* context, const v1::RetryRequest* request,
                                  v1::RetryResponse* response) {
  return rpc::ToGrpc(DoRetry(*context, *request, *response));
}

absl::StatusOr<std::int64_t> SweepsService::FindJob(const std::string& job) {
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  v1::ListJobsRequest jobs;
  jobs.mutable_filter()->add_jobs(job);
  PELAB_ASSIGN_OR_RETURN(const auto found, reader->ListJobs(jobs));
  if (found.jobs_size() == 1) return found.jobs(0).job_id();
  return absl::NotFoundError(absl::StrCat("no job \"", job, "\" is stored"));
}

absl::StatusOr<v1::Sweep> SweepsService::OwnSweep(const access::Caller& caller,
                                                  const std::string& sweep) {
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  PELAB_ASSIGN_OR_RETURN(v1::Sweep row, reader->GetSweepRow(sweep));
  PELAB_RETURN_IF_ERROR(caller.MayChange(row));
  return row;
}

absl::Status SweepsService::MayChangeJob(const access::Caller& caller, std::int64_t job_id,
                                         Whose whose) {
  if (caller.operates()) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  PELAB_ASSIGN_OR_RETURN(const auto sweeps, reader->SweepsOfJob(job_id, whose == Whose::kAll));
  absl::Status refused = absl::PermissionDeniedError(absl::StrCat(
      "job ", job_id, " is in no sweep of ", caller.name, "'s; an operator may change it"));
  for (const v1::Sweep& sweep : sweeps) {
    absl::Status status = caller.MayChange(sweep);
    if (status.ok() && whose == Whose::kAny) return absl::OkStatus();
    if (!status.ok() && whose == Whose::kAll) return status;
    if (status.ok()) refused = absl::OkStatus();
  }
  return refused;
}

absl::StatusOr<store::Cancelled> SweepsService::Cancel(store::Write write,
                                                       std::optional<store::RecordAct> act) {
  PELAB_ASSIGN_OR_RETURN(
      store::WriteResult result,
      AppendAndWait(
          parts_.writer, std::move(write),
          [this](const store::WriteResult& stored) {
            parts_.executor.Post([this, cancelled = std::get<store::Cancelled>(stored)] {
              parts_.scheduler.Cancelled(cancelled);
            });
          },
          std::move(act)));
  return std::get<store::Cancelled>(std::move(result));
}

// The first write makes the cancellation durable. The call waits for the following slices only for
// a limited time.
absl::Status SweepsService::DoCancel(const grpc::ServerContext& context,
                                     const v1::CancelRequest& request,
                                     v1::CancelResponse& response) {
  const auto now = [this] { return absl::ToUnixMillis(parts_.clock.Wall()); };
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  if (request.target_case() == v1::CancelRequest::kJob) {
    PELAB_ASSIGN_OR_RETURN(const std::int64_t job_id, FindJob(request.job()));
    PELAB_RETURN_IF_ERROR(MayChangeJob(caller, job_id, Whose::kAll));
    PELAB_ASSIGN_OR_RETURN(const auto cancelled,
                           Cancel(store::CancelJob{job_id, now()},
                                  caller.Act("Sweeps/Cancel", absl::StrCat("job ", job_id))));
    Add(cancelled, response);
    return absl::OkStatus();
  }
  if (request.target_case() != v1::CancelRequest::kSweep) {
    return absl::InvalidArgumentError("a sweep or a job must be named");
  }
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, OwnSweep(caller, request.sweep().sweep()));
  const std::int64_t sweep_id = sweep.sweep_id();
  PELAB_ASSIGN_OR_RETURN(const auto cancelled,
                         Cancel(store::CancelSweep{sweep_id, now()},
                                caller.Act("Sweeps/Cancel", access::Named(sweep))));
  Add(cancelled, response);
  const absl::Duration end = parts_.clock.Monotonic() + kCallTime;
  while (response.more() && parts_.clock.Monotonic() < end && !context.IsCancelled()) {
    const auto slice = Cancel(store::DropSlice{sweep_id, now()});
    if (!slice.ok()) break;
    Add(*slice, response);
  }
  if (response.more()) parts_.expander.Drop(sweep_id);
  return absl::OkStatus();
}

absl::Status SweepsService::DoControl(const grpc::ServerContext& context, absl::string_view method,
                                      const std::string& name, store::ControlSweep write,
                                      v1::SweepControl& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  PELAB_ASSIGN_OR_RETURN(v1::Sweep sweep, OwnSweep(caller, name));
  PELAB_RETURN_IF_ERROR(caller.MaySetPriority(write.priority.value_or(0)));
  write.sweep_id = sweep.sweep_id();
  PELAB_ASSIGN_OR_RETURN(const store::WriteResult result,
                         AppendAndWait(
                             parts_.writer, write,
                             [this](const store::WriteResult& stored) {
                               const auto& controlled = std::get<store::SweepControlled>(stored);
                               if (!controlled.live) return;
                               parts_.executor.Post([this, settings = controlled.settings] {
                                 parts_.scheduler.SetSweepSettings(settings);
                               });
                             },
                             caller.Act(method, access::Named(sweep))));
  const auto& controlled = std::get<store::SweepControlled>(result);
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  PELAB_ASSIGN_OR_RETURN(sweep, reader->GetSweepRow(absl::StrCat(sweep.sweep_id())));
  response.set_sweep_id(sweep.sweep_id());
  response.set_name(sweep.name());
  response.set_state(sweep.state());
  response.set_paused(controlled.settings.paused);
  response.set_priority(controlled.settings.priority);
  response.set_changed(controlled.changed);
  return absl::OkStatus();
}

absl::StatusOr<store::Retried> SweepsService::Retry(store::Write write,
                                                    std::optional<store::RecordAct> act) {
  PELAB_ASSIGN_OR_RETURN(
      store::WriteResult result,
      AppendAndWait(
          parts_.writer, std::move(write),
          [this](const store::WriteResult& stored) {
            parts_.executor.Post([this, jobs = std::get<store::Retried>(stored).jobs] {
              parts_.scheduler.Expanded(jobs);
            });
          },
          std::move(act)));
  auto& retried = std::get<store::Retried>(result);
  if (!retried.refused.empty()) return absl::FailedPreconditionError(retried.refused);
  return std::move(retried);
}

absl::Status SweepsService::DoRetry(const grpc::ServerContext& context,
                                    const v1::RetryRequest& request, v1::RetryResponse& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  const auto now = [this] { return absl::ToUnixMillis(parts_.clock.Wall()); };
  const auto add = [&response](const store::Retried& part) {
    response.set_queued(response.queued() + part.queued);
    response.set_nothing(response.nothing() + part.nothing);
  };
  if (request.target_case() == v1::RetryRequest::kJob) {
    PELAB_ASSIGN_OR_RETURN(const std::int64_t job_id, FindJob(request.job()));
    PELAB_RETURN_IF_ERROR(MayChangeJob(caller, job_id, Whose::kAny));
    PELAB_ASSIGN_OR_RETURN(const auto retried,
                           Retry(store::RetryJob{job_id, request.failed_only(), now()},
                                 caller.Act("Sweeps/Retry", absl::StrCat("job ", job_id))));
    add(retried);
    return absl::OkStatus();
  }
  if (request.target_case() != v1::RetryRequest::kSweep) {
    return absl::InvalidArgumentError("a sweep or a job must be named");
  }
  PELAB_ASSIGN_OR_RETURN(const std::int64_t after, ReadPosition(request.after()));
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, OwnSweep(caller, request.sweep().sweep()));
  response.set_sweep_id(sweep.sweep_id());
  auto act = caller.Act("Sweeps/Retry", access::Named(sweep));
  const absl::Duration end = parts_.clock.Monotonic() + kCallTime;
  std::optional<std::int64_t> next = after;
  do {
    if (context.IsCancelled()) return absl::CancelledError("the client is gone");
    PELAB_ASSIGN_OR_RETURN(const auto part,
                           Retry(store::RetrySlice{response.sweep_id(), *next, now()},
                                 std::exchange(act, std::nullopt)));
    add(part);
    next = part.next;
  } while (next && parts_.clock.Monotonic() < end);
  if (next) response.set_next(absl::StrCat(*next));
  return absl::OkStatus();
}

}  // namespace pelab::service
