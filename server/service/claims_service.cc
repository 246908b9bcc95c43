#include "server/service/claims_service.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/claims/sheet.h"
#include "core/experiment/sweep.h"
#include "core/rpc/status.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/call_spans.h"
#include "server/service/check_text.h"
#include "server/settle/registration.h"

namespace pelab::service {
namespace {

absl::Status CheckRegister(const v1::RegisterSheetRequest& request) {
  PELAB_RETURN_IF_ERROR(CheckText("file_name", request.file_name(), limits::kFileNameBytes));
  for (const std::string* text : {&request.document(), &request.sweep_document()}) {
    if (text->size() <= experiment::kMaxDocumentBytes) continue;
    return absl::InvalidArgumentError(absl::StrCat("a document has ", text->size(),
                                                   " bytes; at most ",
                                                   experiment::kMaxDocumentBytes, " are allowed"));
  }
  if (request.slots() < 0 || request.slots() > limits::kSlotsOfSheet) {
    return absl::InvalidArgumentError(
        absl::StrCat("slots is ", request.slots(), "; allowed: 0 to ", limits::kSlotsOfSheet));
  }
  return absl::OkStatus();
}

absl::Status CheckAdvance(const v1::AdvanceRequest& request) {
  if (request.begin_round() > 0 && !request.stopped_by().empty()) {
    return absl::InvalidArgumentError("a round cannot be begun and be stopped by a budget");
  }
  if (request.put_aside().size() > static_cast<int>(claims::kMaxClaims)) {
    return absl::InvalidArgumentError(absl::StrCat(request.put_aside_size(),
                                                   " claims are to be put aside; at most ",
                                                   claims::kMaxClaims, " are allowed"));
  }
  return CheckText("stopped_by", request.stopped_by(), limits::kPauseReasonBytes);
}

notify::SpentBudget ToSpentBudget(const settle::Answer& answer, const std::string& stopped_by) {
  const v1::SheetRow& sheet = answer.settlement.sheet();
  notify::SpentBudget budget{.sheet = sheet.name(),
                             .sheet_id = sheet.sheet_id(),
                             .owner = sheet.owner(),
                             .rounds = sheet.ended_rounds(),
                             .stopped_by = stopped_by};
  if (sheet.has_sweep_id()) budget.sweep_id = sheet.sweep_id();
  const auto& claims = answer.settlement.claims();
  if (claims.empty()) budget.open = static_cast<std::int64_t>(answer.claims);
  for (const v1::SheetClaimRow& claim : claims) {
    std::int64_t& count = claim.standing() == "open"      ? budget.open
                          : claim.standing() == "decided" ? budget.decided
                                                          : budget.given_up;
    count += 1;
  }
  return budget;
}

}  // namespace

grpc::Status ClaimsService::RegisterSheet(grpc::ServerContext* context,
                                          const v1::RegisterSheetRequest* request,
                                          v1::Settlement* response) {
  return rpc::ToGrpc(DoRegister(*context, *request, *response));
}
grpc::Status ClaimsService::Advance(grpc::ServerContext* context, const v1::AdvanceRequest* request,
                                    v1::Settlement* response) {
  return rpc::ToGrpc(DoAdvance(*context, *request, *response));
}

grpc::Status ClaimsService::ListSheets(grpc::ServerContext* context,
                                       const v1::ListSheetsRequest* request,
                                       v1::ListSheetsResponse* response) {
  return rpc::ToGrpc([&]() -> absl::Status {
    PELAB_ASSIGN_OR_RETURN(const Turns::Turn turn,
                           parts_.admission.Page(*context, request->page()));
    PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
    PELAB_ASSIGN_OR_RETURN(*response, reader->ListSheets(*request));
    return absl::OkStatus();
  }());
}
grpc::Status ClaimsService::GetSheet(grpc::ServerContext*, const v1::GetSheetRequest* request,
                                     v1::Sheet* response) {
  return rpc::ToGrpc([&]() -> absl::Status {
    PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
    PELAB_ASSIGN_OR_RETURN(*response, reader->GetSheet(*request));
    return absl::OkStatus();
  }());
}
grpc::Status ClaimsService::ListSheetClaims(grpc::ServerContext* context,
                                            const v1::ListSheetClaimsRequest* request,
                                            v1::ListSheetClaimsResponse* response) {
  return rpc::ToGrpc([&]() -> absl::Status {
    PELAB_ASSIGN_OR_RETURN(const Turns::Turn turn,
                           parts_.admission.Page(*context, request->page()));
    PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
    PELAB_ASSIGN_OR_RETURN(*response, reader->ListSheetClaims(*request));
    return absl::OkStatus();
  }());
}

absl::Status ClaimsService::DoRegister(const grpc::ServerContext& context,
                                       const v1::RegisterSheetRequest& request,
                                       v1::Settlement& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  PELAB_RETURN_IF_ERROR(CheckRegister(request));
  PELAB_ASSIGN_OR_RETURN(const Turns::Turn turn, parts_.admission.Document(context));
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  PELAB_ASSIGN_OR_RETURN(store::RegisterSheet write,
                         settle::RegistrationOf(request, caller.name,
                                                absl::ToUnixMillis(parts_.clock.Wall()), *reader));
  const std::string name = write.name;
  const std::int64_t max_seeds = write.max_seeds;
  auto act = caller.Act("Claims/RegisterSheet", absl::StrCat("sheet ", name, ", ", write.sha256));
  PELAB_ASSIGN_OR_RETURN(const store::WriteResult result,
                         AppendAndWait(parts_.writer, std::move(write), nullptr, std::move(act)));
  const auto& registered = std::get<store::SheetRegistered>(result);
  PELAB_RETURN_IF_ERROR(settle::CheckRegistered(name, max_seeds, registered));
  // It may be registered already, and a round be under way.
  v1::AdvanceRequest where;
  where.mutable_sheet()->set_sheet(absl::StrCat(registered.sheet_id));
  settle::Advance advance(parts_.clock, sheets_, where, {});
  PELAB_ASSIGN_OR_RETURN(settle::Answer answer, Run(caller, *reader, advance));
  response = std::move(answer.settlement);
  response.set_registered_now(registered.is_new);
  return absl::OkStatus();
}

absl::Status ClaimsService::DoAdvance(const grpc::ServerContext& context,
                                      const v1::AdvanceRequest& request, v1::Settlement& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  PELAB_RETURN_IF_ERROR(CheckAdvance(request));
  PELAB_ASSIGN_OR_RETURN(const Turns::Turn turn, parts_.admission.Document(context));
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  if (!request.put_aside().empty()) {
    v1::GetSheetRequest which;
    *which.mutable_sheet() = request.sheet();
    PELAB_ASSIGN_OR_RETURN(const v1::Sheet sheet, reader->GetSheet(which));
    PELAB_RETURN_IF_ERROR(
        caller.MayChange(settle::Named(sheet.row()), sheet.row().owner(), "sheets"));
  }
  settle::Advance advance(
      parts_.clock, sheets_, request,
      {.max_queued = caller.limits.max_queued(), .trace = TraceOfSweep(context)});
  PELAB_ASSIGN_OR_RETURN(settle::Answer answer, Run(caller, *reader, advance));
  if (answer.settlement.has_next() && !request.stopped_by().empty()) {
    TellStopped(answer, request.stopped_by());
  }
  response = std::move(answer.settlement);
  return absl::OkStatus();
}

absl::StatusOr<settle::Answer> ClaimsService::Run(const access::Caller& caller, db::Reader& reader,
                                                  settle::Advance& advance) {
  for (;;) {
    PELAB_ASSIGN_OR_RETURN(settle::Step step, advance.Next(reader));
    if (auto* const answer = std::get_if<settle::Answer>(&step)) return std::move(*answer);
    PELAB_RETURN_IF_ERROR(
        Store(caller, reader, advance, std::get<settle::Change>(std::move(step))));
  }
}

absl::Status ClaimsService::Store(const access::Caller& caller, db::Reader& reader,
                                  settle::Advance& advance, settle::Change change) {
  auto act =
      change.act.empty() ? std::nullopt : caller.Act("Claims/Advance", std::move(change.act));
  PELAB_ASSIGN_OR_RETURN(
      const store::WriteResult result,
      AppendAndWait(
          parts_.writer, std::move(change.write),
          [this](const store::WriteResult& stored) {
            const store::SliceStored* const jobs = store::JobsOf(stored);
            if (jobs == nullptr) return;
            parts_.executor.Post([this, jobs = *jobs] { parts_.scheduler.Expanded(jobs); });
          },
          std::move(act)));
  PELAB_ASSIGN_OR_RETURN(std::optional<settle::Expansion> expansion,
                         advance.Stored(reader, result));
  if (!expansion) return absl::OkStatus();
  parts_.expander.Add(expansion->sweep_id, std::move(expansion->sweep), expansion->from);
  return absl::OkStatus();
}

void ClaimsService::TellStopped(const settle::Answer& answer, const std::string& stopped_by) {
  const v1::SheetRow& sheet = answer.settlement.sheet();
  std::pair<std::int64_t, std::string> stop(sheet.ended_rounds(), stopped_by);
  {
    MutexLock lock(&mutex_);
    auto& told = told_[sheet.sheet_id()];
    if (told == stop) return;
    told = std::move(stop);
  }
  on_budget_(ToSpentBudget(answer, stopped_by));
}

}  // namespace pelab::service
