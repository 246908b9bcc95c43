#include "server/service/sweeps_service.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/log.h"
#include "core/base/log_scope.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/experiment/analysis.h"
#include "core/experiment/declaration.h"
#include "core/experiment/stored_analyses.h"
#include "core/rpc/status.h"
#include "core/rpc/sweep_document.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/call_spans.h"
#include "server/service/check_text.h"
#include "server/service/preview.h"
#include "server/stored_sweep.h"

namespace pelab::service {
namespace {

absl::Status CheckSubmit(const v1::SubmitRequest& request) {
  if (request.client_token().empty() || request.client_token().size() > 64) {
    return absl::InvalidArgumentError("client_token must have 1 to 64 characters");
  }
  PELAB_RETURN_IF_ERROR(CheckText("file_name", request.file_name(), limits::kFileNameBytes));
  if (const std::size_t bytes = OverridesToJson(request.overrides()).size();
      bytes > limits::kOverridesBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the overrides have ", bytes, " bytes; at most ",
                                                   limits::kOverridesBytes, " are allowed"));
  }
  return CheckPriority(request.priority());
}

// Hash of the parts of a request that must be equal when its token is used again.
std::string RequestHash(const v1::SubmitRequest& request) {
  return Sha256Hex(nlohmann::json::array({request.document(), OverridesToJson(request.overrides()),
                                          request.priority(), request.fresh(), request.new_sweep()})
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void LogSubmitted(const std::string& principal, const TraceContext& trace,
                  const store::SweepStored& stored, const experiment::Sweep& sweep) {
  const LogScope scope({.trace_id = trace.trace_id,
                        .span_id = trace.span_id,
                        .principal = principal,
                        .sweep_id = stored.sweep_id});
  spdlog::info("sweep {} ({}) was {}{}: {} cells", sweep.name(), stored.sweep_id,
               stored.went_on ? "continued" : "submitted",
               principal.empty() ? "" : absl::StrCat(" by ", principal), sweep.cells());
}

// Whether the documents differ only in lines that start with "seed:".
bool OnlySeedsDiffer(const std::string& a, const std::string& b) {
  const std::vector<std::string> old_lines = absl::StrSplit(a, '\n');
  const std::vector<std::string> new_lines = absl::StrSplit(b, '\n');
  if (old_lines.size() != new_lines.size()) return false;
  bool differ = false;
  for (std::size_t i = 0; i < old_lines.size(); ++i) {
    if (old_lines[i] == new_lines[i]) continue;
    if (!old_lines[i].starts_with("seed:") || !new_lines[i].starts_with("seed:")) return false;
    differ = true;
  }
  return differ;
}

void AddRunning(const v1::ListJobsResponse& jobs, const v1::ListAttemptsResponse& attempts,
                v1::SweepUpdate& update) {
  std::map<std::int64_t, const v1::AttemptRow*> open;
  for (const v1::AttemptRow& attempt : attempts.rows()) {
    if (attempt.outcome() == v1::ATTEMPT_OUTCOME_UNSPECIFIED) open[attempt.job_id()] = &attempt;
  }
  for (const v1::JobRow& row : jobs.jobs()) {
    v1::RunningJob* job = update.add_running();
    job->set_job_id(row.job_id());
    job->set_pe_label(row.pe_label());
    job->set_task(row.task());
    job->set_seed(row.seed());
    job->set_epochs(row.epochs());
    job->set_epochs_done(row.epochs_done());
    job->set_test_accuracy(row.test_accuracy());
    job->set_analysing(row.trained());
    if (const auto attempt = open.find(row.job_id()); attempt != open.end()) {
      job->set_worker(attempt->second->worker());
      job->set_device(attempt->second->device());
    }
  }
}

}  // namespace

SweepsService::SweepsService(const SweepParts& parts)
    : parts_(parts),
      hub_([this](const std::string& sweep) { return Snapshot(sweep); },
           [this] { return parts_.writer.commits(); }) {}

grpc::Status SweepsService::Preview(grpc::ServerContext* context, const v1::PreviewRequest* request,
                                    v1::PreviewResponse* response) {
  return rpc::ToGrpc(DoPreview(*context, *request, *response));
}
grpc::Status SweepsService::Submit(grpc::ServerContext* context, const v1::SubmitRequest* request,
                                   v1::SubmitResponse* response) {
  return rpc::ToGrpc(DoSubmit(*context, *request, *response));
}
absl::Status SweepsService::DoPreview(grpc::ServerContext& context,
                                      const v1::PreviewRequest& request,
                                      v1::PreviewResponse& response) {
  PELAB_ASSIGN_OR_RETURN(Turns::Turn turn, parts_.admission.Document(context));
  PELAB_ASSIGN_OR_RETURN(const experiment::Sweep sweep,
                         rpc::ParseNewSweepDocument(request.document(), request.overrides()));
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  response.set_name(sweep.name());
  return PreviewCells(context, turn, *reader, sweep, 0, request.fresh(),
                      std::min(request.max_jobs(), limits::kPreviewJobs), response);
}

absl::Status SweepsService::DoSubmit(const grpc::ServerContext& context,
                                     const v1::SubmitRequest& request,
                                     v1::SubmitResponse& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  PELAB_RETURN_IF_ERROR(CheckSubmit(request));
  PELAB_RETURN_IF_ERROR(caller.MaySetPriority(request.priority()));
  PELAB_ASSIGN_OR_RETURN(std::optional<Turns::Turn> turn, parts_.admission.Document(context));
  PELAB_ASSIGN_OR_RETURN(experiment::Sweep sweep,
                         rpc::ParseNewSweepDocument(request.document(), request.overrides()));
  PELAB_RETURN_IF_ERROR(KeepFiles(request.overrides()));
  parts_.expander.MakeWay();
  const TraceContext trace = TraceOfSweep(context);
  store::SubmitSweep write{.name = sweep.name(),
                           .protocol = sweep.protocol(),
                           .document = request.document(),
                           .file_name = request.file_name(),
                           .overrides_json = OverridesToJson(request.overrides()),
                           .client_token = request.client_token(),
                           .analyses_json = experiment::StoredAnalysesJson(sweep.analyses()),
                           .resources_json = ResourcesJson(sweep.resources()),
                           .request_sha256 = RequestHash(request),
                           .owner = caller.name,
                           .any_owner = caller.operates(),
                           .max_queued = caller.limits.max_queued(),
                           .priority = request.priority(),
                           .fresh = request.fresh(),
                           .go_on = !request.fresh() && !request.new_sweep(),
                           .trace = trace,
                           .cells = sweep.cells(),
                           .first = BuildSlice(0, sweep, 0, kFirstCells, parts_.clock),
                           .now = absl::ToUnixMillis(parts_.clock.Wall())};
  const std::uint64_t next = write.first->next;
  auto act = caller.Act("Sweeps/Submit", absl::StrCat("sweep ", sweep.name(), ", document ",
                                                      Sha256Hex(request.document())));
  PELAB_ASSIGN_OR_RETURN(
      const store::WriteResult result,
      AppendAndWait(
          parts_.writer, std::move(write),
          [this](const store::WriteResult& stored) {
            parts_.executor.Post([this, first = std::get<store::SweepStored>(stored).first] {
              parts_.scheduler.Expanded(first);
            });
          },
          std::move(act)));
  turn.reset();  // what follows waits for others, and reads little
  const auto& stored = std::get<store::SweepStored>(result);
  if (stored.refusal != store::SweepStored::kNone) return Refused(caller, request, stored);
  if (!stored.repeated_token) {
    // A sweep that goes on keeps its own trace, and one that was made for this call is forgotten.
    LogSubmitted(caller.name, stored.went_on ? SpanOf(context).value_or(TraceContext()) : trace,
                 stored, sweep);
  }
  const bool small = sweep.cells() <= kSmallSweep;
  if (stored.expands_again) {
    PELAB_RETURN_IF_ERROR(ExpandAgain(stored.sweep_id));
  } else if (!stored.repeated_token && !stored.went_on && next < sweep.cells()) {
    parts_.expander.Add(stored.sweep_id, std::move(sweep), next);
  }
  if (small) parts_.expander.WaitFor(stored.sweep_id, kSmallSweepTime);
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep row, reader->GetSweepRow(absl::StrCat(stored.sweep_id)));
  response.set_sweep_id(row.sweep_id());
  response.set_name(row.name());
  response.set_cells(row.cells());
  response.set_expanded(row.state() != v1::SWEEP_STATE_EXPANDING);
  *response.mutable_counts() = row.counts();
  response.set_repeated_token(stored.repeated_token);
  response.set_went_on(stored.went_on);
  response.set_reopened(stored.reopened);
  return absl::OkStatus();
}

// Expands the sweep again, including the seeds that were added since its submission.
absl::Status SweepsService::ExpandAgain(std::int64_t sweep_id) {
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep row, reader->GetSweepRow(absl::StrCat(sweep_id)));
  PELAB_ASSIGN_OR_RETURN(experiment::Sweep sweep, RebuildSweep(row));
  parts_.expander.Add(sweep_id, std::move(sweep), 0);
  return absl::OkStatus();
}

namespace {

// "another document", "other content of decay.pt", "other overrides", or several of them.
std::string WhatDiffers(const v1::Sweep& row, const v1::SubmitRequest& request) {
  std::vector<std::string> parts;
  if (row.document() != request.document()) parts.push_back("another document");
  std::map<std::string, std::string> before = rpc::ByField(row.overrides());
  std::map<std::string, std::string> now = rpc::ByField(request.overrides());
  for (auto at = before.begin(); at != before.end();) {
    const auto same_field = now.find(at->first);
    const bool is_file = at->first.starts_with(experiment::kFileOverride);
    if (!is_file || same_field == now.end()) {
      ++at;
      continue;
    }
    if (same_field->second != at->second) {
      const std::string path = at->first.substr(experiment::kFileOverride.size());
      parts.push_back(absl::StrCat("other content of ", Shorten(path, 100)));
    }
    now.erase(same_field);
    at = before.erase(at);
  }
  if (before != now) parts.push_back("other overrides");
  return parts.empty() ? "another document or other overrides" : absl::StrJoin(parts, " and ");
}

}  // namespace

absl::Status SweepsService::Refused(const access::Caller& caller, const v1::SubmitRequest& request,
                                    const store::SweepStored& stored) {
  if (stored.refusal == store::SweepStored::kFull) {
    return QueueIsFull(caller.name, stored.queued, caller.limits.max_queued());
  }
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep row, reader->GetSweepRow(absl::StrCat(stored.sweep_id)));
  const std::string sweep = access::Named(row);
  if (stored.refusal == store::SweepStored::kForeign) {
    return absl::PermissionDeniedError(absl::StrCat(
        sweep, " has this name and document and is ", row.owner().empty() ? "nobody" : row.owner(),
        "'s; nothing was stored: give yours a name of its own (--name NAME), or make it another "
        "sweep of that name (--new)"));
  }
  if (stored.refusal == store::SweepStored::kTokenUsed) {
    return absl::AlreadyExistsError(
        absl::StrCat("client_token \"", request.client_token(),
                     "\" was used before, for another request, which is ", sweep,
                     "; nothing was stored: a new request needs a new token"));
  }
  std::string hint;
  if (OnlySeedsDiffer(row.document(), request.document())) {
    hint = absl::StrCat("; seeds are added to it by `pelab extend ", row.sweep_id(), " --seed …`");
  }
  return absl::AlreadyExistsError(absl::StrCat(
      sweep, " was submitted with ", WhatDiffers(row, request), hint,
      "; nothing was stored: give this one a name of its own (--name NAME), or make it another "
      "sweep of that name (--new)"));
}

grpc::Status SweepsService::ListSweeps(grpc::ServerContext* context,
                                       const v1::ListSweepsRequest* request,
                                       v1::ListSweepsResponse* response) {
  const auto read = [&]() -> absl::Status {
    PELAB_ASSIGN_OR_RETURN(const Turns::Turn turn,
                           parts_.admission.Page(*context, request->page()));
    PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
    PELAB_ASSIGN_OR_RETURN(*response, reader->ListSweeps(*request));
    return absl::OkStatus();
  };
  const absl::Status status = read();
  if (!status.ok()) return rpc::ToGrpc(status);
  for (v1::Sweep& sweep : *response->mutable_sweeps()) AddWaitingReason(sweep);
  return grpc::Status::OK;
}

grpc::Status SweepsService::GetSweep(grpc::ServerContext*, const v1::GetSweepRequest* request,
                                     v1::Sweep* response) {
  auto reader = parts_.readers.Take();
  if (!reader.ok()) return rpc::ToGrpc(reader.status());
  auto sweep = (*reader)->GetSweep(request->sweep().sweep());
  if (!sweep.ok()) return rpc::ToGrpc(sweep.status());
  *response = *std::move(sweep);
  AddWaitingReason(*response);
  return grpc::Status::OK;
}

void SweepsService::AddWaitingReason(v1::Sweep& sweep) {
  const bool live =
      sweep.state() == v1::SWEEP_STATE_EXPANDING || sweep.state() == v1::SWEEP_STATE_ACTIVE;
  if (!live || sweep.jobs().queued() == 0) return;
  sweep.set_waiting_reason(AskOn<std::string>(
      parts_.executor, [this, id = sweep.sweep_id()] { return parts_.scheduler.WaitingReason(id); },
      ""));
}

absl::StatusOr<v1::SweepUpdate> SweepsService::Snapshot(const std::string& name) {
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  v1::SweepUpdate update;
  PELAB_ASSIGN_OR_RETURN(*update.mutable_sweep(), reader->GetSweep(name));
  v1::Sweep& sweep = *update.mutable_sweep();
  sweep.clear_document();
  AddWaitingReason(sweep);
  if (sweep.jobs().running() == 0) return update;
  v1::ListJobsRequest jobs;
  jobs.mutable_filter()->set_sweep(absl::StrCat(sweep.sweep_id()));
  jobs.mutable_filter()->add_states(v1::JOB_STATE_RUNNING);
  jobs.mutable_page()->set_limit(limits::kRunningOfUpdate);
  PELAB_ASSIGN_OR_RETURN(const auto rows, reader->ListJobs(jobs));
  if (rows.jobs_size() == 0) return update;
  v1::ListAttemptsRequest attempts;
  for (const v1::JobRow& row : rows.jobs()) {
    attempts.mutable_filter()->add_jobs(absl::StrCat(row.job_id()));
  }
  PELAB_ASSIGN_OR_RETURN(const auto attempt_rows, reader->ListAttempts(attempts));
  AddRunning(rows, attempt_rows, update);
  return update;
}

grpc::ServerWriteReactor<v1::SweepUpdate>* SweepsService::WatchSweep(
    grpc::CallbackServerContext*, const v1::WatchSweepRequest* request) {
  return hub_.Watch(request->sweep().sweep());
}

}  // namespace pelab::service
