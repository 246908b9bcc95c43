#include "server/settle/settlement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/catalog/catalog.h"
#include "core/claims/cell_labels.h"
#include "core/claims/evidence_json.h"
#include "core/claims/metric.h"
#include "core/db/read/all_rows.h"
#include "core/experiment/configuration.h"
#include "core/experiment/key.h"

namespace pelab::settle {
namespace {

constexpr std::size_t kShown = 100;  // bytes of a claim's id in a message

// The lists that claims::LoadOwnRows reads.
class Lists {
 public:
  explicit Lists(db::RowReader& reader) : reader_(reader) {}

  absl::StatusOr<results::JobList> Jobs(const v1::JobFilter& filter) {
    results::JobList jobs;
    auto request = Request<v1::ListJobsRequest>(filter);
    request.set_specs_apart(true);
    PELAB_RETURN_IF_ERROR(
        db::ForEachPage(reader_, &db::RowReader::ListJobs, request,
                        [&](v1::ListJobsResponse& page) { jobs.Add(std::move(page)); }));
    return jobs;
  }
  absl::StatusOr<std::vector<v1::EpochsToRow>> EpochsTo(const v1::JobFilter& filter,
                                                        double accuracy) {
    auto request = Request<v1::ListEpochsToRequest>(filter);
    request.set_test_accuracy(accuracy);
    return db::AllRows<v1::EpochsToRow>(reader_, &db::RowReader::ListEpochsTo, request);
  }
  absl::StatusOr<std::vector<v1::AttemptRow>> Attempts(const v1::JobFilter& filter) {
    return db::AllRows<v1::AttemptRow>(reader_, &db::RowReader::ListAttempts,
                                       Request<v1::ListAttemptsRequest>(filter));
  }
  absl::StatusOr<std::vector<v1::AnalysisRow>> Analyses(const v1::JobFilter& filter,
                                                        const std::string& name) {
    auto request = Request<v1::ListAnalysesRequest>(filter);
    request.set_name(name);
    return db::AllRows<v1::AnalysisRow>(reader_, &db::RowReader::ListAnalyses, request);
  }
  absl::StatusOr<std::vector<v1::HeadAblationRow>> HeadAblations(const v1::JobFilter& filter) {
    return db::AllRows<v1::HeadAblationRow>(reader_, &db::RowReader::ListHeadAblations,
                                            Request<v1::ListHeadAblationsRequest>(filter));
  }
  absl::StatusOr<std::vector<v1::ArtifactRow>> Artifacts(const v1::JobFilter& filter) {
    return db::AllRows<v1::ArtifactRow>(reader_, &db::RowReader::ListArtifacts,
                                        Request<v1::ListArtifactsRequest>(filter));
  }
  absl::StatusOr<std::vector<v1::DepositRow>> Deposits(const v1::JobFilter& filter) {
    return db::AllRows<v1::DepositRow>(reader_, &db::RowReader::ListDeposits,
                                       Request<v1::ListDepositsRequest>(filter));
  }

 private:
  template <typename T>
  static T Request(const v1::JobFilter& filter) {
    T request;
    *request.mutable_filter() = filter;
    return request;
  }

  db::RowReader& reader_;
};

absl::Status BadRows(const v1::SheetRow& row, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(Named(row), ": ", what));
}

absl::StatusOr<claims::Round> ToRound(const v1::SheetRow& row, const v1::SheetRoundRow& stored,
                                      const claims::BoundSheet& bound) {
  std::map<std::uint64_t, std::size_t> positions;
  for (std::size_t i = 0; i < bound.configurations.size(); ++i) {
    positions[bound.configurations[i].combination] = i;
  }
  claims::Round round{.number = stored.round(),
                      .first_seed = stored.first_seed(),
                      .end_seed = stored.end_seed(),
                      .cells = {}};
  const auto cells = ParseJson(stored.cells_json());
  for (const auto& cell : cells) {
    const auto found =
        cell.is_number_unsigned() ? positions.find(cell.get<std::uint64_t>()) : positions.end();
    if (found == positions.end()) {
      return BadRows(
          row, absl::StrCat("the cells of round ", stored.round(), " are not those of its sweep"));
    }
    round.cells.push_back(found->second);
  }
  return round;
}

absl::StatusOr<claims::ClaimState> ToState(const v1::SheetRow& row,
                                           const v1::SheetClaimRow& stored) {
  const auto standing = claims::ParseStanding(stored.standing());
  const auto verdict = claims::ParseVerdict(stored.verdict());
  if (!standing || !verdict) return BadRows(row, "a claim has an unknown standing or verdict");
  return claims::ClaimState{
      .standing = *standing,
      .e = {.seeds = stored.seeds(),
            .eligible = stored.eligible(),
            .log_holds = stored.log_e_holds(),
            .log_fails = stored.log_e_fails()},
      .judgement = {.verdict = *verdict, .log_threshold = stored.log_threshold()}};
}

// The job rows of the sheet's configurations, by configuration and seed.
using JobRows = std::map<std::pair<std::size_t, std::int64_t>, const v1::JobRow*>;
JobRows JobRowsOf(const claims::BoundSheet& bound, const claims::StoredRows& rows) {
  std::map<std::string, std::size_t> positions;
  for (std::size_t i = 0; i < bound.configurations.size(); ++i) {
    const experiment::Cell& cell = bound.configurations[i];
    positions[experiment::TemplateOf(cell.canonical_json, cell.job.seed)] = i;
  }
  JobRows found;
  for (const v1::JobRow& row : rows.jobs) {
    const auto spec = rows.jobs.templates().find(row.configuration_id());
    if (spec == rows.jobs.templates().end()) continue;
    const auto position = positions.find(spec->second);
    if (position == positions.end()) continue;
    const v1::JobRow*& known = found[{position->second, row.seed()}];
    if (known == nullptr || known->generation() <= row.generation()) known = &row;
  }
  return found;
}

// Why an open cell will not come by itself; empty: it will.
std::string ReasonOf(const v1::JobRow* row, const claims::OpenCell& cell, bool live) {
  if (row == nullptr) return live ? "" : "it is not there";
  switch (row->state()) {
    case v1::JOB_STATE_FAILED:
      return row->error().empty() ? "it failed" : row->error();
    case v1::JOB_STATE_CANCELLED:
      return "it was cancelled";
    case v1::JOB_STATE_SUCCEEDED:
      return cell.lacks.empty() ? ""
                                : absl::StrCat("it is trained, but has no ",
                                               std::string(claims::AnalysisOf(cell.lacks)));
    default:
      return live ? "" : "the sheet's sweep does not claim it any more";
  }
}

const claims::Claim& ClaimAt(const StoredSheet& sheet, std::size_t at) {
  return sheet.bound->sheet.claims[sheet.bound->claims[at].claim];
}

// Weighs the first `seeds` seeds of the claim.
claims::Evidence EvidenceOf(const StoredSheet& sheet, std::size_t at, std::int64_t seeds,
                            const claims::Outcomes& outcomes) {
  const std::int64_t first = sheet.registration.first_seed;
  return claims::Weigh(*sheet.bound, sheet.bound->claims[at], outcomes, first, first + seeds);
}
// Weighs the seeds of the claim up to the last round that gave it seeds and has ended.
claims::Evidence EvidenceOf(const StoredSheet& sheet, std::size_t at,
                            const claims::Outcomes& outcomes) {
  return EvidenceOf(sheet, at, sheet.states[at].e.seeds, outcomes);
}

void SetFigures(const claims::Summary& summary, v1::SheetClaimRow& row) {
  const auto set = [&row](const std::optional<double>& value, auto setter) {
    if (value && std::isfinite(*value)) (row.*setter)(*value);
  };
  row.set_leans_to(claims::LeansTo(summary));
  row.set_k(summary.leading.count.successes);
  row.set_n(summary.leading.count.trials);
  row.set_shows(summary.shows.successes);
  set(summary.estimate.mean, &v1::SheetClaimRow::set_mean);
  set(summary.estimate.t_half_width, &v1::SheetClaimRow::set_t_half_width);
  set(summary.estimate.median.low, &v1::SheetClaimRow::set_median_low);
  set(summary.estimate.median.high, &v1::SheetClaimRow::set_median_high);
}

// Sets everything of a claim after a round but its figures.
void SetState(const StoredSheet& sheet, std::int64_t number, std::size_t at,
              const claims::ClaimState& state, v1::SheetClaimRow& row) {
  row.set_sheet_id(sheet.row.sheet_id());
  row.set_round(number);
  row.set_position(static_cast<std::int64_t>(at));
  row.set_claim(sheet.bound->claims[at].id);
  row.set_standing(claims::NameOf(state.standing));
  row.set_verdict(claims::NameOf(state.judgement.verdict));
  row.set_seeds(state.e.seeds);
  row.set_eligible(state.e.eligible);
  row.set_exploratory(claims::ExploratorySeeds(sheet.registration, state.e.seeds));
  row.set_log_e_holds(state.e.log_holds);
  row.set_log_e_fails(state.e.log_fails);
  row.set_log_threshold(state.judgement.log_threshold);
}

// Whether the claim got no seeds after this round. Its figures may be missing (claims.proto).
bool HasFinalFigures(const v1::SheetClaimRow& row) {
  return row.has_leans_to() && row.standing() != claims::NameOf(claims::Standing::kOpen);
}

// The slot time of some jobs.
struct Times {
  double seconds = 0;
  int jobs = 0;

  void Add(double of_job) {
    seconds += of_job;
    jobs += 1;
  }
};
using TimesByCell = std::map<std::size_t, Times>;

// A sheet has no times of its own before its first round. It then takes the times of this many
// seeds before its first one, and of as many from seed 0 on.
constexpr std::int64_t kEarlierSeeds = 8;

using CellsByKey = std::map<std::string, std::size_t>;
void AddKeys(const StoredSheet& sheet, std::size_t at, std::int64_t first_seed,
             std::int64_t end_seed, CellsByKey& cells) {
  const experiment::Cell& cell = sheet.bound->configurations[at];
  const std::string its = experiment::TemplateOf(cell.canonical_json, cell.job.seed);
  for (std::int64_t seed = first_seed; seed < end_seed; ++seed) {
    cells[experiment::KeyOf(experiment::FillTemplate(its, seed))] = at;
  }
}

// The slot time of the jobs with these keys. They may be trained for any sweep.
absl::StatusOr<TimesByCell> TimesOf(db::Reader& reader, const CellsByKey& cells) {
  std::vector<std::string> keys;
  for (const auto& [key, cell] : cells) keys.push_back(key);
  PELAB_ASSIGN_OR_RETURN(const auto found, reader.FindKeys(keys, {}));
  TimesByCell times;
  if (found.empty()) return times;
  v1::JobFilter filter;
  for (const auto& [key, job] : found) filter.add_jobs(key);
  claims::StoredRows rows;
  PELAB_ASSIGN_OR_RETURN(rows.jobs, Lists(reader).Jobs(filter));
  filter.add_states(v1::JOB_STATE_FAILED);
  PELAB_ASSIGN_OR_RETURN(rows.attempts, Lists(reader).Attempts(filter));
  const claims::SlotTimes slot_times(rows);
  for (const v1::JobRow& row : rows.jobs) {
    const auto cell = cells.find(row.key());
    const std::optional<double> seconds = slot_times.Of(row);
    if (seconds && cell != cells.end()) times[cell->second].Add(*seconds);
  }
  return times;
}

// Adds the times of earlier seeds for cells of the round that have none.
absl::Status AddEarlierTimes(db::Reader& reader, const StoredSheet& sheet,
                             const claims::Round& round, TimesByCell& times) {
  const std::int64_t first = sheet.registration.first_seed;
  CellsByKey keys;
  for (const std::size_t at : round.cells) {
    if (times.contains(at)) continue;
    AddKeys(sheet, at, 0, std::min(kEarlierSeeds, first), keys);
    AddKeys(sheet, at, std::max<std::int64_t>(0, first - kEarlierSeeds), first, keys);
  }
  if (keys.empty()) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(const TimesByCell earlier, TimesOf(reader, keys));
  times.insert(earlier.begin(), earlier.end());
  return absl::OkStatus();
}

absl::Status SetNext(db::Reader& reader, const StoredSheet& sheet, const claims::Round& round,
                     TimesByCell times, v1::Settlement& settlement) {
  v1::PlannedRound& next = *settlement.mutable_next();
  const std::int64_t seeds = round.end_seed - round.first_seed;
  const auto cells = static_cast<std::int64_t>(round.cells.size());
  next.set_round(round.number);
  next.set_first_seed(round.first_seed);
  next.set_end_seed(round.end_seed);
  next.set_jobs(cells * seeds);
  // Other sweeps may have trained some of its jobs.
  CellsByKey keys;
  for (const std::size_t at : round.cells) {
    AddKeys(sheet, at, round.first_seed, round.end_seed, keys);
  }
  PELAB_ASSIGN_OR_RETURN(const TimesByCell stored, TimesOf(reader, keys));
  for (const auto& [at, of_cell] : stored) {
    next.set_stored(next.stored() + of_cell.jobs);
    next.set_stored_seconds(next.stored_seconds() + of_cell.seconds);
  }
  PELAB_RETURN_IF_ERROR(AddEarlierTimes(reader, sheet, round, times));
  double known = 0;
  int with_times = 0;
  for (const std::size_t cell : round.cells) {
    const auto found = times.find(cell);
    if (found == times.end()) continue;
    known += found->second.seconds / found->second.jobs;
    ++with_times;
  }
  if (with_times == 0) return absl::OkStatus();
  next.set_expected_seconds(known / with_times * static_cast<double>(next.jobs() - next.stored()));
  return absl::OkStatus();
}

}  // namespace

std::string Named(const v1::SheetRow& sheet) {
  return absl::StrCat("sheet ", sheet.sheet_id(), " (", sheet.name(), ")");
}

absl::StatusOr<StoredSheet> LoadSheet(db::RowReader& reader, v1::Sheet stored,
                                      std::shared_ptr<const claims::BoundSheet> bound) {
  StoredSheet sheet{.row = std::move(*stored.mutable_row()), .bound = std::move(bound)};
  sheet.registration = {.first_seed = sheet.row.first_seed(),
                        .fresh_from = sheet.row.fresh_from(),
                        .slots = std::max<std::int64_t>(1, sheet.row.slots())};
  if (stored.rounds_size() > 0) {
    const v1::SheetRoundRow& last = stored.rounds(stored.rounds_size() - 1);
    PELAB_ASSIGN_OR_RETURN(sheet.last, ToRound(sheet.row, last, *sheet.bound));
    sheet.open = !last.has_ended_at_ms();
  }
  sheet.states.resize(sheet.bound->claims.size());
  v1::ListSheetClaimsRequest request;
  request.mutable_sheet()->set_sheet(absl::StrCat(sheet.row.sheet_id()));
  request.set_last_round(true);
  PELAB_ASSIGN_OR_RETURN(sheet.claims, db::AllRows<v1::SheetClaimRow>(
                                           reader, &db::RowReader::ListSheetClaims, request));
  if (sheet.claims.empty()) return sheet;
  if (sheet.claims.size() != sheet.states.size()) {
    return BadRows(sheet.row, "its rounds have other claims than its document");
  }
  for (std::size_t i = 0; i < sheet.states.size(); ++i) {
    PELAB_ASSIGN_OR_RETURN(sheet.states[i], ToState(sheet.row, sheet.claims[i]));
  }
  return sheet;
}

absl::StatusOr<claims::StoredRows> RowsOf(db::RowReader& reader, const StoredSheet& sheet) {
  if (!sheet.row.has_sweep_id()) return claims::StoredRows{};
  Lists lists(reader);
  return claims::LoadOwnRows(lists, sheet.row.sweep_id(), sheet.bound->sheet);
}

absl::StatusOr<std::vector<claims::Summary>> SummariesOf(db::RowReader& reader,
                                                         const StoredSheet& sheet) {
  PELAB_ASSIGN_OR_RETURN(const claims::StoredRows rows, RowsOf(reader, sheet));
  const claims::Outcomes outcomes = claims::OutcomesOf(*sheet.bound, rows);
  std::vector<claims::Summary> summaries;
  for (std::size_t i = 0; i < sheet.states.size(); ++i) {
    summaries.push_back(claims::SummaryOf(ClaimAt(sheet, i).kind, EvidenceOf(sheet, i, outcomes)));
  }
  return summaries;
}

absl::StatusOr<std::size_t> PositionOf(const StoredSheet& sheet, const std::string& id) {
  std::vector<std::string_view> ids;
  for (std::size_t i = 0; i < sheet.bound->claims.size(); ++i) {
    if (sheet.bound->claims[i].id == id) return i;
    ids.emplace_back(sheet.bound->claims[i].id);
  }
  const std::string_view meant = catalog::DidYouMean(id, ids);
  return absl::InvalidArgumentError(Concat(
      Named(sheet.row), " has no claim \"", Shorten(Escape(id), kShown), "\"",
      meant.empty() ? "; pelab claims show lists them" : Concat("; did you mean ", meant, "?")));
}

absl::StatusOr<render::Json> SeedsOf(db::RowReader& reader, const StoredSheet& sheet,
                                     const std::string& claim) {
  PELAB_ASSIGN_OR_RETURN(const std::size_t at, PositionOf(sheet, claim));
  PELAB_ASSIGN_OR_RETURN(const claims::StoredRows rows, RowsOf(reader, sheet));
  const claims::Evidence evidence = EvidenceOf(sheet, at, claims::OutcomesOf(*sheet.bound, rows));
  const std::string metric = claims::ValueName(ClaimAt(sheet, at));
  const claims::CellLabels labels(sheet.bound->configurations);
  return render::Json{{"metric", metric},
                      {"fraction", claims::IsFraction(metric)},
                      {"sides", claims::SidesJson(evidence)},
                      {"statistics", claims::StatisticsJson(*sheet.bound, labels,
                                                            sheet.bound->claims[at], evidence)}};
}

std::vector<v1::SheetClaimRow> RowsAfter(const StoredSheet& sheet, std::int64_t number,
                                         std::span<const v1::SheetClaimRow> before,
                                         std::span<const claims::ClaimState> states,
                                         const claims::Outcomes& outcomes) {
  std::vector<v1::SheetClaimRow> rows;
  rows.reserve(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool keeps = !before.empty() && HasFinalFigures(before[i]);
    v1::SheetClaimRow& row = keeps ? rows.emplace_back(before[i]) : rows.emplace_back();
    SetState(sheet, number, i, states[i], row);
    if (keeps) continue;
    const claims::Evidence evidence = EvidenceOf(sheet, i, row.seeds(), outcomes);
    SetFigures(claims::SummaryOf(ClaimAt(sheet, i).kind, evidence), row);
  }
  return rows;
}

std::vector<std::uint64_t> CombinationsOf(const StoredSheet& sheet, const claims::Round& round) {
  std::vector<std::uint64_t> combinations;
  combinations.reserve(round.cells.size());
  for (const std::size_t cell : round.cells) {
    combinations.push_back(sheet.bound->configurations[cell].combination);
  }
  return combinations;
}

std::string CellsJson(const std::vector<std::uint64_t>& combinations) {
  return nlohmann::json(combinations).dump();
}

std::vector<Blocked> BlockedOf(const StoredSheet& sheet, const claims::StoredRows& rows,
                               const std::vector<claims::OpenCell>& open, bool live) {
  const JobRows jobs = JobRowsOf(*sheet.bound, rows);
  std::optional<claims::CellLabels> labels;
  std::vector<Blocked> blocked;
  for (const claims::OpenCell& cell : open) {
    const auto found = jobs.find({cell.configuration, cell.seed});
    const v1::JobRow* row = found == jobs.end() ? nullptr : found->second;
    const std::string reason = ReasonOf(row, cell, live);
    if (reason.empty()) continue;
    Blocked& one = blocked.emplace_back();
    one.job.set_job_id(row == nullptr ? 0 : row->job_id());
    if (!labels) labels.emplace(sheet.bound->configurations);
    one.job.set_label(absl::StrCat(labels->Of(cell.configuration), " seed ", cell.seed));
    one.job.set_reason(reason);
    one.failed = row != nullptr && row->state() == v1::JOB_STATE_FAILED;
  }
  return blocked;
}

absl::StatusOr<v1::Settlement> ToSettlement(db::Reader& reader, const StoredSheet& sheet,
                                            const claims::StoredRows& rows) {
  v1::Settlement settlement;
  *settlement.mutable_sheet() = sheet.row;
  settlement.mutable_sheet()->clear_document();
  settlement.mutable_sheet()->clear_sweep_document();
  for (const v1::SheetClaimRow& claim : sheet.claims) *settlement.add_claims() = claim;
  TimesByCell times;
  Times all;
  const claims::SlotTimes slot_times(rows);
  for (const auto& [at, row] : JobRowsOf(*sheet.bound, rows)) {
    const std::optional<double> seconds = slot_times.Of(*row);
    if (!seconds) continue;
    times[at.first].Add(*seconds);
    all.Add(*seconds);
  }
  settlement.set_jobs(all.jobs);
  settlement.set_slot_seconds(all.seconds);
  if (sheet.open) return settlement;
  const auto next = claims::NextRound(*sheet.bound, sheet.registration,
                                      sheet.last ? &*sheet.last : nullptr, sheet.states);
  if (next) PELAB_RETURN_IF_ERROR(SetNext(reader, sheet, *next, std::move(times), settlement));
  return settlement;
}

}  // namespace pelab::settle
