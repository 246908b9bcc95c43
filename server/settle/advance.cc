#include "server/settle/advance.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/experiment/stored_analyses.h"
#include "core/rpc/sweep_document.h"
#include "server/limits.h"
#include "server/stored_sweep.h"

namespace pelab::settle {
namespace {

constexpr int kPlans = 10;  // at most, if others advance the same sheet at the same time

bool IsLive(const v1::Sweep& sweep) {
  return sweep.state() == v1::SWEEP_STATE_EXPANDING || sweep.state() == v1::SWEEP_STATE_ACTIVE;
}

std::string SeedsText(const claims::Round& round) {
  return round.end_seed - round.first_seed == 1
             ? absl::StrCat(round.first_seed)
             : absl::StrCat(round.first_seed, "..", round.end_seed - 1);
}

// How many jobs of the last round a claim cannot be judged on: their analysis is missing, and they
// have no weights to make it from. "" if there are none.
std::string WithoutAnalyses(const StoredSheet& sheet, const claims::Outcomes& outcomes) {
  const claims::Round& round = *sheet.last;
  std::int64_t jobs = 0;
  for (std::int64_t seed = round.first_seed; seed < round.end_seed; ++seed) {
    for (const std::size_t cell : round.cells) {
      const claims::Outcome& outcome = outcomes.Of(cell, seed);
      jobs += outcome.analyses_over && outcome.analyses.empty();
    }
  }
  if (jobs == 0) return "";
  return absl::StrCat("; ", jobs, " of its jobs cannot be analyzed, since no weights are stored");
}

std::int64_t PutAsideOf(const StoredSheet& sheet) {
  return std::count_if(sheet.states.begin(), sheet.states.end(), [](const auto& state) {
    return state.standing == claims::Standing::kPutAside;
  });
}

// Tells the client about the round that is under way.
void SetOpen(const StoredSheet& sheet, std::size_t open_jobs, v1::OpenRound& open) {
  const claims::Round& last = *sheet.last;
  open.mutable_round()->set_sheet_id(sheet.row.sheet_id());
  open.mutable_round()->set_round(last.number);
  open.mutable_round()->set_first_seed(last.first_seed);
  open.mutable_round()->set_end_seed(last.end_seed);
  open.set_jobs(static_cast<std::int64_t>(last.cells.size()) * (last.end_seed - last.first_seed));
  open.set_open_jobs(static_cast<std::int64_t>(open_jobs));
}

void SetBlocked(const std::vector<Blocked>& blocked, v1::OpenRound& open) {
  open.set_blocked_jobs(static_cast<std::int64_t>(blocked.size()));
  for (const Blocked& one : blocked) {
    if (open.blocked_size() < limits::kReasonsOfAnswer) *open.add_blocked() = one.job;
  }
}

}  // namespace

Advance::Advance(const Clock& clock, Sheets& sheets, v1::AdvanceRequest request, Asker asker)
    : clock_(clock),
      sheets_(sheets),
      request_(std::move(request)),
      asker_(std::move(asker)),
      again_(request_.again()) {}

std::int64_t Advance::Now() const { return absl::ToUnixMillis(clock_.Wall()); }

absl::StatusOr<Step> Advance::Next(db::Reader& reader) {
  if (!queued_.empty()) {
    Step step = std::move(queued_.front());
    queued_.pop_front();
    return step;
  }
  if (then_) return *std::move(then_);
  if (++plans_ > kPlans) {
    return absl::AbortedError(absl::StrCat("sheet \"", request_.sheet().sheet(),
                                           "\" is being advanced by others; try again"));
  }
  PELAB_ASSIGN_OR_RETURN(const StoredSheet sheet, sheets_.Load(reader, request_.sheet().sheet()));
  owner_ = sheet.row.owner();
  PELAB_ASSIGN_OR_RETURN(auto putting, PuttingAside(sheet));
  if (putting) return *std::move(putting);
  if (sheet.open) return EndOrWait(reader, sheet);
  const auto next = claims::NextRound(*sheet.bound, sheet.registration,
                                      sheet.last ? &*sheet.last : nullptr, sheet.states);
  if (next && std::exchange(again_, false)) {
    PELAB_ASSIGN_OR_RETURN(auto reopening, Reopening(reader, sheet));
    if (reopening) return *std::move(reopening);
  }
  if (next && next->number == request_.begin_round()) return Begin(reader, sheet, *next);
  PELAB_ASSIGN_OR_RETURN(const claims::StoredRows rows, RowsOf(reader, sheet));
  Answer answer{.claims = sheet.bound->claims.size()};
  PELAB_ASSIGN_OR_RETURN(answer.settlement, ToSettlement(reader, sheet, rows));
  return answer;
}

// The write that puts aside those of the named claims that are open; nullopt: none is.
absl::StatusOr<std::optional<Change>> Advance::PuttingAside(const StoredSheet& sheet) const {
  std::vector<std::int64_t> positions;
  std::vector<std::string> names;
  for (const std::string& name : request_.put_aside()) {
    PELAB_ASSIGN_OR_RETURN(const std::size_t at, PositionOf(sheet, name));
    const auto position = static_cast<std::int64_t>(at);
    const bool again = std::find(positions.begin(), positions.end(), position) != positions.end();
    if (again || sheet.states[at].standing != claims::Standing::kOpen) continue;
    positions.push_back(position);
    names.push_back(sheet.bound->claims[at].id);
  }
  if (positions.empty()) return std::nullopt;
  if (sheet.claims.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no round of ", Named(sheet.row),
                     " has ended yet, so no claim can be put aside; a sheet under another name can "
                     "leave it out"));
  }
  return Change{store::PutAside{.sheet_id = sheet.row.sheet_id(),
                                .round = sheet.last->number - (sheet.open ? 1 : 0),
                                .positions = std::move(positions)},
                absl::StrCat(Named(sheet.row), ", put aside: ", absl::StrJoin(names, ", "))};
}

namespace {

absl::Status IsCancelled(const StoredSheet& sheet, const v1::Sweep& sweep) {
  return absl::FailedPreconditionError(
      absl::StrCat("sweep ", sweep.sweep_id(), " of ", Named(sheet.row),
                   " is cancelled; settle the sheet again to go on with it"));
}

}  // namespace

absl::StatusOr<Step> Advance::EndOrWait(db::Reader& reader, const StoredSheet& sheet) {
  v1::Sweep sweep;
  if (sheet.row.has_sweep_id()) {
    // Read before the rows: if it has ended, they are complete.
    PELAB_ASSIGN_OR_RETURN(sweep, reader.GetSweep(absl::StrCat(sheet.row.sweep_id())));
  }
  PELAB_ASSIGN_OR_RETURN(const claims::StoredRows rows, RowsOf(reader, sheet));
  const claims::Outcomes outcomes = claims::OutcomesOf(*sheet.bound, rows);
  const auto open =
      claims::OpenCellsOf(*sheet.bound, sheet.registration, *sheet.last, sheet.states, outcomes);
  const bool cancelled = sweep.state() == v1::SWEEP_STATE_CANCELLED;
  if (open.empty() && !cancelled) {
    const auto states =
        claims::Conclude(*sheet.bound, sheet.registration, *sheet.last, sheet.states, outcomes);
    return Change{store::EndRound{.sheet_id = sheet.row.sheet_id(),
                                  .round = sheet.last->number,
                                  .claims = RowsAfter(sheet, sheet.last->number, sheet.claims,
                                                      states, outcomes),
                                  .put_aside = PutAsideOf(sheet),
                                  .now = Now()},
                  absl::StrCat(Named(sheet.row), ", end of round ", sheet.last->number,
                               WithoutAnalyses(sheet, outcomes))};
  }
  const std::vector<Blocked> blocked = BlockedOf(sheet, rows, open, IsLive(sweep));
  Answer answer{.claims = sheet.bound->claims.size()};
  PELAB_ASSIGN_OR_RETURN(answer.settlement, ToSettlement(reader, sheet, rows));
  SetOpen(sheet, open.size(), *answer.settlement.mutable_open());
  // An analysis that was withdrawn with the sweep may be a better one than that of another sweep,
  // so no claim is judged by results that are only complete because the sweep was cancelled.
  const bool withdrawn = open.empty() && cancelled;
  if (std::exchange(again_, false) && (withdrawn || !blocked.empty())) {
    return QueueAgain(sheet, blocked, cancelled, std::move(answer));
  }
  if (withdrawn) return IsCancelled(sheet, sweep);
  SetBlocked(blocked, *answer.settlement.mutable_open());
  return answer;
}

// If the sheet's sweep was cancelled between two rounds, the write that reopens it.
absl::StatusOr<std::optional<Change>> Advance::Reopening(db::Reader& reader,
                                                         const StoredSheet& sheet) const {
  if (!sheet.row.has_sweep_id()) return std::nullopt;
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep row,
                         reader.GetSweepRow(absl::StrCat(sheet.row.sweep_id())));
  if (row.state() != v1::SWEEP_STATE_CANCELLED) return std::nullopt;
  return Change{store::ReopenSweep{row.sweep_id()}, ""};
}

// The answer is that of before, without what is queued again. No job runs for a `cancelled` sweep,
// so that one is reopened first.
absl::StatusOr<Step> Advance::QueueAgain(const StoredSheet& sheet,
                                         const std::vector<Blocked>& blocked, bool cancelled,
                                         Answer answer) {
  if (!sheet.row.has_sweep_id()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the sweep of ", Named(sheet.row), " was deleted, and round ",
                     sheet.last->number, " needs its results; it cannot be settled any further"));
  }
  const auto failed = [](const Blocked& one) { return one.failed; };
  if (cancelled || !std::all_of(blocked.begin(), blocked.end(), failed)) {
    queued_.push_back({store::ReopenSweep{sheet.row.sweep_id()}, ""});
  }
  for (const Blocked& one : blocked) {
    if (!one.failed) continue;
    queued_.push_back(
        {store::RetryJob{.job_id = one.job.job_id(), .failed_only = true, .now = Now()}, ""});
  }
  then_ = std::move(answer);
  Step first = std::move(queued_.front());
  queued_.pop_front();
  return first;
}

// The sheet's sweep as it is now. For a sheet without one, `write` is told how to make it.
absl::StatusOr<experiment::Sweep> Advance::SweepOf(db::Reader& reader, const StoredSheet& sheet,
                                                   store::BeginRound& write) const {
  if (sheet.row.has_sweep_id()) {
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep row,
                           reader.GetSweepRow(absl::StrCat(sheet.row.sweep_id())));
    if (row.state() == v1::SWEEP_STATE_CANCELLED) return IsCancelled(sheet, row);
    write.seeds.known = static_cast<std::size_t>(row.extensions_size());
    return RebuildSweep(row);
  }
  if (sheet.last) {
    return absl::FailedPreconditionError(
        absl::StrCat("the sweep of ", Named(sheet.row),
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
                         .analyses_json = experiment::StoredAnalysesJson(sweep.analyses()),
                         .resources_json = ResourcesJson(sweep.resources()),
                         .request_sha256 = sheet.row.sha256(),
                         .owner = sheet.row.owner(),
                         .trace = asker_.trace,
                         .now = write.now});
  return sweep;
}

absl::StatusOr<Step> Advance::Begin(db::Reader& reader, const StoredSheet& sheet,
                                    const claims::Round& round) {
  store::BeginRound write{.sheet_id = sheet.row.sheet_id(),
                          .round = round.number,
                          .first_seed = round.first_seed,
                          .end_seed = round.end_seed,
                          .put_aside = PutAsideOf(sheet),
                          .now = Now()};
  PELAB_ASSIGN_OR_RETURN(const experiment::Sweep sweep, SweepOf(reader, sheet, write));
  const std::vector<std::uint64_t> combinations = CombinationsOf(sheet, round);
  write.cells_json = CellsJson(combinations);
  experiment::Extension extension = experiment::ExtendSome(sweep, SeedsText(round), combinations);
  if (!extension.sweep) return absl::FailedPreconditionError(extension.problem);
  write.seeds.seeds = extension.seeds;
  write.seeds.cells = extension.sweep->cells();
  write.seeds.max_queued = asker_.max_queued;
  with_.reset();
  if (!extension.seeds.empty()) with_ = std::move(extension.sweep);
  return Change{std::move(write), absl::StrCat(Named(sheet.row), ", round ", round.number,
                                               ", seeds ", SeedsText(round))};
}

absl::StatusOr<std::optional<Expansion>> Advance::Stored(db::Reader& reader,
                                                         const store::WriteResult& result) {
  if (const auto* begun = std::get_if<store::RoundBegun>(&result)) {
    if (begun->sweep.full) {
      return QueueIsFull(owner_, begun->sweep.queued, asker_.max_queued);
    }
    if (!begun->applied || !with_) return std::nullopt;
    return Expansion{begun->sweep_id, *std::move(with_), begun->sweep.expanded};
  }
  const auto* reopened = std::get_if<store::SweepStored>(&result);
  if (reopened == nullptr || !reopened->expands_again) return std::nullopt;
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep row, reader.GetSweepRow(absl::StrCat(reopened->sweep_id)));
  PELAB_ASSIGN_OR_RETURN(experiment::Sweep sweep, RebuildSweep(row));
  return Expansion{reopened->sweep_id, std::move(sweep), 0};
}

}  // namespace pelab::settle
