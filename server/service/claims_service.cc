#include "server/service/claims_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/experiment/configuration.h"
#include "core/rpc/sheet_document.h"
#include "core/rpc/status.h"
#include "core/rpc/sweep_document.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/call_spans.h"
#include "server/service/check_text.h"
#include "server/service/sweeps_service.h"

namespace pelab::service {
namespace {

constexpr int kAdvances = 10;  // retries if others advance the same sheet at the same time
constexpr std::size_t kBoundSheets = 16;  // that are kept

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

// The templates of the configurations that claims are about.
std::vector<std::string> TemplatesOf(const claims::BoundSheet& sheet) {
  std::vector<bool> used(sheet.configurations.size());
  for (const claims::BoundClaim& claim : sheet.claims) {
    for (const std::size_t cell : claims::CellsOf(claim)) used[cell] = true;
  }
  std::vector<std::string> templates;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const experiment::Cell& cell = sheet.configurations[i];
    if (used[i]) templates.push_back(experiment::TemplateOf(cell.canonical_json, cell.job.seed));
  }
  return templates;
}

// The slots of the workers that are there.
absl::StatusOr<std::int64_t> OnlineSlots(db::Reader& reader) {
  std::int64_t slots = 0;
  v1::ListWorkersRequest request;
  request.mutable_page()->set_limit(db::kMaxPage);
  PELAB_ASSIGN_OR_RETURN(const v1::ListWorkersResponse workers, reader.ListWorkers(request));
  for (const v1::WorkerRow& worker : workers.workers()) {
    if (worker.state() == "online") slots += worker.slots();
  }
  return std::clamp<std::int64_t>(slots, 1, limits::kSlotsOfSheet);
}

std::string NamedSheet(const v1::SheetRow& sheet) {
  return absl::StrCat("sheet ", sheet.sheet_id(), " (", sheet.name(), ")");
}

v1::GetSheetRequest RequestOf(const std::string& sheet) {
  v1::GetSheetRequest request;
  request.mutable_sheet()->set_sheet(sheet);
  return request;
}

absl::Status CheckAdvance(const v1::AdvanceRequest& request) {
  if (request.begin_round() > 0 && !request.stopped_by().empty()) {
    return absl::InvalidArgumentError("a round cannot be begun and be stopped by a budget");
  }
  return CheckText("stopped_by", request.stopped_by(), limits::kPauseReasonBytes);
}

notify::SpentBudget ToSpentBudget(const StoredSheet& sheet, const std::string& stopped_by) {
  notify::SpentBudget budget{.sheet = sheet.row.name(),
                             .sheet_id = sheet.row.sheet_id(),
                             .owner = sheet.row.owner(),
                             .rounds = sheet.row.ended_rounds(),
                             .stopped_by = stopped_by};
  if (sheet.row.has_sweep_id()) budget.sweep_id = sheet.row.sweep_id();
  if (sheet.claims.empty()) budget.open = static_cast<std::int64_t>(sheet.bound->claims.size());
  for (const v1::SheetClaimRow& claim : sheet.claims) {
    std::int64_t& count = claim.standing() == "open"      ? budget.open
                          : claim.standing() == "decided" ? budget.decided
                                                          : budget.given_up;
    count += 1;
  }
  return budget;
}

bool IsLive(const v1::Sweep& sweep) {
  return sweep.state() == v1::SWEEP_STATE_EXPANDING || sweep.state() == v1::SWEEP_STATE_ACTIVE;
}

std::string SeedsText(const claims::Round& round) {
  return round.end_seed - round.first_seed == 1
             ? absl::StrCat(round.first_seed)
             : absl::StrCat(round.first_seed, "..", round.end_seed - 1);
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
  PELAB_ASSIGN_OR_RETURN(const claims::BoundSheet bound,
                         rpc::BindSheetDocument(request.document(), request.sweep_document()));
  PELAB_RETURN_IF_ERROR(claims::CheckCanBeSettled(bound));
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  const claims::Sheet& sheet = bound.sheet;
  PELAB_ASSIGN_OR_RETURN(const std::string sweep_document,
                         rpc::SweepDocumentOf(sheet, request.sweep_document()));
  store::RegisterSheet write{.name = sheet.name,
                             .sha256 = claims::HashOf(request.document(), sweep_document),
                             .document = request.document(),
                             .file_name = request.file_name(),
                             .sweep_document = sweep_document,
                             .templates = TemplatesOf(bound),
                             .first_seed = sheet.first_seed,
                             .fresh = !request.any_seeds(),
                             .end_of_seeds = claims::kFirstPilotSeed,
                             .max_seeds = sheet.max_seeds,
                             .slots = request.slots(),
                             .owner = caller.name,
                             .now = absl::ToUnixMillis(parts_.clock.Wall())};
  if (write.slots == 0) {
    PELAB_ASSIGN_OR_RETURN(write.slots, OnlineSlots(*reader));
  }
  auto act =
      caller.Act("Claims/RegisterSheet", absl::StrCat("sheet ", sheet.name, ", ", write.sha256));
  PELAB_ASSIGN_OR_RETURN(const store::WriteResult result,
                         AppendAndWait(parts_.writer, std::move(write), nullptr, std::move(act)));
  const auto& registered = std::get<store::SheetRegistered>(result);
  if (registered.has_name) {
    return absl::AlreadyExistsError(
        absl::StrCat("sheet ", *registered.has_name, " is named ", sheet.name,
                     " and says something else (pelab claims diff ", *registered.has_name,
                     " FILE); an edited sheet is another one and needs a name of its own, and the "
                     "registered one ",
                     "goes on with: pelab settle ", *registered.has_name));
  }
  if (registered.fresh_from) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the cells of sheet ", sheet.name, " have seeds up to ", *registered.fresh_from - 1,
        ", and the sheet needs ", sheet.max_seeds, " below ", claims::kFirstPilotSeed,
        "; a smaller max_seeds may do, or seeds that are stored already (--no-fresh-seeds)"));
  }
  PELAB_ASSIGN_OR_RETURN(const StoredSheet stored,
                         Load(*reader, absl::StrCat(registered.sheet_id)));
  PELAB_ASSIGN_OR_RETURN(const claims::StoredRows rows, RowsOf(*reader, stored));
  PELAB_ASSIGN_OR_RETURN(response, ToSettlement(*reader, stored, rows));
  response.set_registered_now(registered.is_new);
  return absl::OkStatus();
}

absl::StatusOr<StoredSheet> ClaimsService::Load(db::Reader& reader, const std::string& sheet) {
  PELAB_ASSIGN_OR_RETURN(v1::Sheet stored, reader.GetSheet(RequestOf(sheet)));
  PELAB_ASSIGN_OR_RETURN(auto bound, Bound(stored.row()));
  return LoadSheet(reader, std::move(stored), std::move(bound));
}

absl::StatusOr<std::shared_ptr<const claims::BoundSheet>> ClaimsService::Bound(
    const v1::SheetRow& row) {
  {
    MutexLock lock(&mutex_);
    for (auto its = bound_.begin(); its != bound_.end(); ++its) {
      if (its->first != row.sha256()) continue;
      bound_.splice(bound_.begin(), bound_, its);
      return its->second;
    }
  }
  auto read = rpc::BindSheetDocument(row.document(), row.sweep_document());
  if (!read.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(NamedSheet(row), " cannot be settled: this version refuses its document"));
  }
  auto bound = std::make_shared<const claims::BoundSheet>(*std::move(read));
  MutexLock lock(&mutex_);
  bound_.emplace_front(row.sha256(), bound);
  if (bound_.size() > kBoundSheets) bound_.pop_back();
  return bound;
}

absl::Status ClaimsService::DoAdvance(const grpc::ServerContext& context,
                                      const v1::AdvanceRequest& request, v1::Settlement& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  PELAB_RETURN_IF_ERROR(CheckAdvance(request));
  PELAB_ASSIGN_OR_RETURN(const Turns::Turn turn, parts_.admission.Document(context));
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  bool again = request.again();
  for (int i = 0; i < kAdvances; ++i) {
    PELAB_ASSIGN_OR_RETURN(const StoredSheet sheet, Load(*reader, request.sheet().sheet()));
    if (sheet.open) {
      PELAB_ASSIGN_OR_RETURN(const bool ended, EndOrWait(caller, *reader, sheet,
                                                         std::exchange(again, false), response));
      if (!ended) return absl::OkStatus();
      continue;
    }
    const auto next = claims::NextRound(*sheet.bound, sheet.registration,
                                        sheet.last ? &*sheet.last : nullptr, sheet.states);
    if (!next || next->number != request.begin_round()) {
      PELAB_ASSIGN_OR_RETURN(const claims::StoredRows rows, RowsOf(*reader, sheet));
      PELAB_ASSIGN_OR_RETURN(response, ToSettlement(*reader, sheet, rows));
      if (next && !request.stopped_by().empty()) TellStopped(sheet, request.stopped_by());
      return absl::OkStatus();
    }
    PELAB_RETURN_IF_ERROR(Begin(caller, TraceOfSweep(context), *reader, sheet, *next));
  }
  return absl::AbortedError(absl::StrCat("sheet \"", request.sheet().sheet(),
                                         "\" is being advanced by others; try again"));
}

absl::StatusOr<bool> ClaimsService::EndOrWait(const access::Caller& caller, db::Reader& reader,
                                              const StoredSheet& sheet, bool again,
                                              v1::Settlement& response) {
  v1::Sweep sweep;
  if (sheet.row.has_sweep_id()) {
    // Read before the rows: if it has ended, they are complete.
    PELAB_ASSIGN_OR_RETURN(sweep, reader.GetSweep(absl::StrCat(sheet.row.sweep_id())));
  }
  PELAB_ASSIGN_OR_RETURN(const claims::StoredRows rows, RowsOf(reader, sheet));
  const claims::Outcomes outcomes = claims::OutcomesOf(*sheet.bound, rows);
  const auto open = claims::OpenCellsOf(*sheet.bound, *sheet.last, sheet.states, outcomes);
  if (open.empty()) {
    const auto states =
        claims::Conclude(*sheet.bound, sheet.registration, *sheet.last, sheet.states, outcomes);
    PELAB_RETURN_IF_ERROR(
        AppendAndWait(
            parts_.writer,
            store::EndRound{.sheet_id = sheet.row.sheet_id(),
                            .round = sheet.last->number,
                            .claims = ToStore(sheet, states),
                            .now = absl::ToUnixMillis(parts_.clock.Wall())},
            nullptr,
            caller.Act("Claims/Advance",
                       absl::StrCat(NamedSheet(sheet.row), ", end of round ", sheet.last->number)))
            .status());
    return true;
  }
  const std::vector<Blocked> blocked = BlockedOf(sheet, rows, open, IsLive(sweep));
  PELAB_ASSIGN_OR_RETURN(response, ToSettlement(reader, sheet, rows));
  v1::OpenRound& round = *response.mutable_open();
  round.mutable_round()->set_sheet_id(sheet.row.sheet_id());
  round.mutable_round()->set_round(sheet.last->number);
  round.mutable_round()->set_first_seed(sheet.last->first_seed);
  round.mutable_round()->set_end_seed(sheet.last->end_seed);
  round.set_jobs(static_cast<std::int64_t>(sheet.last->cells.size()) *
                 (sheet.last->end_seed - sheet.last->first_seed));
  round.set_open_jobs(static_cast<std::int64_t>(open.size()));
  if (again && !blocked.empty()) {
    PELAB_RETURN_IF_ERROR(QueueAgain(sheet, blocked));
    return false;
  }
  round.set_blocked_jobs(static_cast<std::int64_t>(blocked.size()));
  for (const Blocked& one : blocked) {
    if (round.blocked_size() < limits::kReasonsOfAnswer) *round.add_blocked() = one.job;
  }
  return false;
}

// Posts what the scheduler has to know. Runs on the writer thread.
void ClaimsService::TellScheduler(const store::SliceStored& jobs) {
  parts_.executor.Post([this, jobs] { parts_.scheduler.Expanded(jobs); });
}

absl::Status ClaimsService::QueueAgain(const StoredSheet& sheet,
                                       const std::vector<Blocked>& blocked) {
  const bool cancelled =
      std::any_of(blocked.begin(), blocked.end(), [](const Blocked& one) { return !one.failed; });
  if (!sheet.row.has_sweep_id()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the sweep of ", NamedSheet(sheet.row), " was deleted, and round ",
                     sheet.last->number, " needs its results; it cannot be settled any further"));
  }
  if (cancelled) {
    PELAB_ASSIGN_OR_RETURN(
        const store::WriteResult result,
        AppendAndWait(parts_.writer, store::ReopenSweep{sheet.row.sweep_id()},
                      [this](const store::WriteResult& stored) {
                        TellScheduler(std::get<store::SweepStored>(stored).first);
                      }));
    if (std::get<store::SweepStored>(result).expands_again) {
      PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
      PELAB_ASSIGN_OR_RETURN(const v1::Sweep row,
                             reader->GetSweepRow(absl::StrCat(sheet.row.sweep_id())));
      PELAB_ASSIGN_OR_RETURN(experiment::Sweep sweep, Rebuild(row));
      parts_.expander.Add(sheet.row.sweep_id(), std::move(sweep), 0);
    }
  }
  for (const Blocked& one : blocked) {
    if (!one.failed) continue;
    PELAB_RETURN_IF_ERROR(
        AppendAndWait(parts_.writer,
                      store::RetryJob{.job_id = one.job.job_id(),
                                      .failed_only = true,
                                      .now = absl::ToUnixMillis(parts_.clock.Wall())},
                      [this](const store::WriteResult& stored) {
                        TellScheduler(std::get<store::Retried>(stored).jobs);
                      })
            .status());
  }
  return absl::OkStatus();
}

// The sheet's sweep as it is now. For a sheet without one, `write` is told how to make it.
absl::StatusOr<experiment::Sweep> ClaimsService::SweepOf(db::Reader& reader,
                                                         const StoredSheet& sheet,
                                                         const TraceContext& trace,
                                                         store::BeginRound& write) {
  if (sheet.row.has_sweep_id()) {
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep row,
                           reader.GetSweepRow(absl::StrCat(sheet.row.sweep_id())));
    if (row.state() == v1::SWEEP_STATE_CANCELLED) {
      return absl::FailedPreconditionError(
          absl::StrCat("sweep ", row.sweep_id(), " of ", NamedSheet(sheet.row),
                       " is cancelled; settle the sheet again to go on with it"));
    }
    write.seeds.known = static_cast<std::size_t>(row.extensions_size());
    return Rebuild(row);
  }
  if (sheet.last) {
    return absl::FailedPreconditionError(
        absl::StrCat("the sweep of ", NamedSheet(sheet.row),
                     " was deleted with its results; the sheet cannot be settled any further"));
  }
  google::protobuf::RepeatedPtrField<v1::Override> overrides;
  const auto set = [&](const char* field, const std::string& value) {
    v1::Override& override = *overrides.Add();
    override.set_field(field);
    override.set_value(value);
  };
  set("seed", std::string(experiment::kNoSeeds));
  set("name", sheet.row.name());
  PELAB_ASSIGN_OR_RETURN(experiment::Sweep sweep,
                         rpc::ParseSweepDocument(sheet.row.sweep_document(), overrides));
  write.sweep = std::make_shared<const store::SubmitSweep>(
      store::SubmitSweep{.name = sweep.name(),
                         .protocol = sweep.protocol(),
                         .document = sheet.row.sweep_document(),
                         .file_name = sheet.row.file_name(),
                         .overrides_json = OverridesToJson(overrides),
                         .client_token = sheet.row.sha256(),
                         .analyses_json = AnalysesJson(sweep.analyses()),
                         .resources_json = ResourcesJson(sweep.resources()),
                         .request_sha256 = sheet.row.sha256(),
                         .owner = sheet.row.owner(),
                         .trace = trace,
                         .now = write.now});
  return sweep;
}

void ClaimsService::TellStopped(const StoredSheet& sheet, const std::string& stopped_by) {
  std::pair<std::int64_t, std::string> stop(sheet.row.ended_rounds(), stopped_by);
  {
    MutexLock lock(&mutex_);
    auto& told = told_[sheet.row.sheet_id()];
    if (told == stop) return;
    told = std::move(stop);
  }
  on_budget_(ToSpentBudget(sheet, stopped_by));
}

absl::Status ClaimsService::Begin(const access::Caller& caller, const TraceContext& trace,
                                  db::Reader& reader, const StoredSheet& sheet,
                                  const claims::Round& round) {
  store::BeginRound write{.sheet_id = sheet.row.sheet_id(),
                          .round = round.number,
                          .first_seed = round.first_seed,
                          .end_seed = round.end_seed,
                          .now = absl::ToUnixMillis(parts_.clock.Wall())};
  PELAB_ASSIGN_OR_RETURN(const experiment::Sweep sweep, SweepOf(reader, sheet, trace, write));
  const std::vector<std::uint64_t> combinations = CombinationsOf(sheet, round);
  write.cells_json = CellsJson(combinations);
  experiment::Extension extension = experiment::ExtendSome(sweep, SeedsText(round), combinations);
  if (!extension.sweep) return absl::FailedPreconditionError(extension.problem);
  write.seeds.seeds = extension.seeds;
  write.seeds.cells = extension.sweep->cells();
  write.seeds.max_queued = caller.limits.max_queued();
  PELAB_ASSIGN_OR_RETURN(
      const store::WriteResult result,
      AppendAndWait(
          parts_.writer, std::move(write),
          [this](const store::WriteResult& stored) {
            TellScheduler(std::get<store::RoundBegun>(stored).sweep.jobs);
          },
          caller.Act("Claims/Advance", absl::StrCat(NamedSheet(sheet.row), ", round ", round.number,
                                                    ", seeds ", SeedsText(round)))));
  const auto& begun = std::get<store::RoundBegun>(result);
  if (begun.sweep.full) {
    return QueueIsFull(sheet.row.owner(), begun.sweep.queued, caller.limits.max_queued());
  }
  if (begun.applied && !extension.seeds.empty()) {
    parts_.expander.Add(begun.sweep_id, *std::move(extension.sweep), begun.sweep.expanded);
  }
  return absl::OkStatus();
}

}  // namespace pelab::service
