#include "tests/sim/sheet_ledger.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>

#include "core/claims/rounds.h"
#include "core/db/read/all_rows.h"
#include "server/settle/settlement.h"
#include "server/settle/sheets.h"
#include "server/store/database.h"

namespace pelab::sim {
namespace {

SQLite::Statement Query(store::Store& store, const char* sql) {
  return {store.database().connection(), sql};
}

// Every figure of a claim after a round; numbers have as many digits as tell them apart.
std::string TextOf(const v1::SheetClaimRow& row) { return row.ShortDebugString(); }
std::string TextOf(std::int64_t number, std::int64_t first_seed, std::int64_t end_seed,
                   const std::string& cells_json) {
  return absl::StrCat("round ", number, ": seeds ", first_seed, "..", end_seed - 1, " of ",
                      cells_json);
}

std::string TextOf(const settle::StoredSheet& sheet, const claims::Round& round) {
  return TextOf(round.number, round.first_seed, round.end_seed,
                settle::CellsJson(settle::CombinationsOf(sheet, round)));
}

// The stored rounds of a sheet: a line for each round, and after it a line for each claim. The
// database alone knows which claims people put aside, and after which round.
struct StoredLines {
  std::vector<std::string> lines;
  std::map<std::int64_t, std::vector<std::size_t>> put_aside;  // positions, by round
};

// The states with the claims put aside that people put aside after the round; of these claims,
// those that have a bit in `which`.
std::vector<claims::ClaimState> WithPutAside(std::vector<claims::ClaimState> states,
                                             const StoredLines& stored, std::int64_t round,
                                             std::uint64_t which = ~std::uint64_t{0}) {
  const auto found = stored.put_aside.find(round);
  if (found == stored.put_aside.end()) return states;
  for (std::size_t i = 0; i < found->second.size(); ++i) {
    claims::Standing& standing = states[found->second[i]].standing;
    const bool is_one = ((which >> i) & 1) != 0 && standing == claims::Standing::kOpen;
    if (is_one) standing = claims::Standing::kPutAside;
  }
  return states;
}

// The round after `last`, after which the claims stood as in `before`. It has no cells of claims
// that were put aside before it began, and has those of the ones that were put aside later.
std::optional<claims::Round> RoundAfter(const settle::StoredSheet& sheet, const claims::Round& last,
                                        const std::vector<claims::ClaimState>& before,
                                        const StoredLines& stored) {
  const auto with = [&](std::uint64_t which) {
    return claims::NextRound(*sheet.bound, sheet.registration, &last,
                             WithPutAside(before, stored, last.number, which));
  };
  const auto found = stored.put_aside.find(last.number);
  const std::size_t asides = found == stored.put_aside.end() ? 0 : found->second.size();
  const auto& lines = stored.lines;
  for (std::uint64_t which = 0; which + 1 < std::uint64_t{1} << asides; ++which) {
    const auto round = with(which);
    const bool is_stored =
        round && std::find(lines.begin(), lines.end(), TextOf(sheet, *round)) != lines.end();
    if (is_stored) return round;
  }
  return with(~std::uint64_t{0});
}

// The verdicts of a sheet that nothing disturbs, in lines such as the stored ones.
std::vector<std::string> Undisturbed(const settle::StoredSheet& sheet,
                                     const claims::Outcomes& outcomes, const StoredLines& stored) {
  std::vector<std::string> lines;
  std::vector<claims::ClaimState> before(sheet.bound->claims.size());
  std::vector<claims::ClaimState> states = before;
  std::vector<v1::SheetClaimRow> rows;
  auto round = claims::NextRound(*sheet.bound, sheet.registration, nullptr, states);
  for (; round; round = RoundAfter(sheet, *round, before, stored)) {
    lines.push_back(TextOf(sheet, *round));
    if (!claims::OpenCellsOf(*sheet.bound, sheet.registration, *round, states, outcomes).empty()) {
      lines.push_back(absl::StrCat("round ", round->number, " lacks results"));
      return lines;
    }
    before = claims::Conclude(*sheet.bound, sheet.registration, *round, states, outcomes);
    states = WithPutAside(before, stored, round->number);
    rows = settle::RowsAfter(sheet, round->number, rows, states, outcomes);
    for (const v1::SheetClaimRow& row : rows) lines.push_back(TextOf(row));
  }
  return lines;
}

StoredLines StoredLinesOf(db::Reader& reader, std::int64_t sheet_id) {
  StoredLines stored;
  v1::GetSheetRequest request;
  request.mutable_sheet()->set_sheet(absl::StrCat(sheet_id));
  const auto sheet = reader.GetSheet(request);
  v1::ListSheetClaimsRequest listed;
  *listed.mutable_sheet() = request.sheet();
  const auto claims =
      db::AllRows<v1::SheetClaimRow>(reader, &db::RowReader::ListSheetClaims, listed);
  if (!sheet.ok() || !claims.ok()) return {.lines = {"it cannot be read"}, .put_aside = {}};
  for (const v1::SheetRoundRow& round : sheet->rounds()) {
    stored.lines.push_back(
        TextOf(round.round(), round.first_seed(), round.end_seed(), round.cells_json()));
    for (const v1::SheetClaimRow& claim : *claims) {
      if (claim.round() != round.round()) continue;
      stored.lines.push_back(TextOf(claim));
      if (claim.standing() == "put aside") {
        stored.put_aside[claim.round()].push_back(static_cast<std::size_t>(claim.position()));
      }
    }
  }
  return stored;
}

// How often a loss that is not finite was the outcome of one of the sweep's jobs, which was then
// tried again or cancelled. A claim may have been judged on what is not there any more.
constexpr char kChangedOutcomes[] =
    "SELECT count(*) FROM attempts AS a JOIN sweep_jobs AS c USING (job_id) "
    "JOIN jobs AS j USING (job_id) "
    "WHERE c.sweep_id = ? AND a.error_kind = 'non_finite_loss' AND (j.state <> 'failed' OR EXISTS ("
    "SELECT 1 FROM attempts AS b WHERE b.job_id = a.job_id AND b.number > a.number))";

}  // namespace

std::int64_t SheetLedger::Sheet::ended() const {
  return std::count_if(rounds.begin(), rounds.end(), [](const Round& r) { return r.ended; });
}

void SheetLedger::On(const store::RegisterSheet& write, const store::SheetRegistered& registered) {
  if (!registered.is_new) return;
  world_.Note("  sheet ", registered.sheet_id, " is registered");
  if (!sheets_.empty()) Violate("sheet ", registered.sheet_id, " is registered again");
  sheets_[registered.sheet_id].max_seeds = write.max_seeds;
}

bool SheetLedger::MustBeRefused(const store::BeginRound& write) const {
  const auto found = sheets_.find(write.sheet_id);
  if (found == sheets_.end()) return true;
  const std::vector<Round>& rounds = found->second.rounds;
  return write.round != static_cast<std::int64_t>(rounds.size()) + 1 ||
         (!rounds.empty() && !rounds.back().ended);
}

bool SheetLedger::MustBeRefused(const store::EndRound& write) const {
  const auto found = sheets_.find(write.sheet_id);
  if (found == sheets_.end()) return true;
  const std::vector<Round>& rounds = found->second.rounds;
  return write.round != static_cast<std::int64_t>(rounds.size()) || rounds.back().ended;
}

std::int64_t SheetLedger::RoundsOf(std::int64_t sheet_id) const {
  const auto found = sheets_.find(sheet_id);
  return found == sheets_.end() ? 0 : static_cast<std::int64_t>(found->second.rounds.size());
}

// The seeds of a round follow those of the round before it, and a round at most doubles them.
void SheetLedger::CheckSeeds(const store::BeginRound& write, const Sheet& sheet) {
  if (sheet.rounds.empty()) return;
  const std::int64_t first = sheet.rounds.front().first_seed;
  const std::int64_t turn = sheet.rounds.back().end_seed;
  if (write.first_seed != turn) {
    Violate("round ", write.round, " begins at seed ", write.first_seed, ", and the turn is at ",
            turn);
  }
  const bool too_many = write.end_seed - write.first_seed > turn - first;
  const bool beyond = sheet.max_seeds > 0 && write.end_seed > first + sheet.max_seeds;
  if (too_many || beyond || write.end_seed <= write.first_seed) {
    Violate("round ", write.round, " has the seeds ", write.first_seed, " to ", write.end_seed - 1);
  }
}

void SheetLedger::On(const store::BeginRound& write, const store::RoundBegun& begun) {
  if (!begun.applied) return;
  world_.Note("  round ", write.round, " of sheet ", write.sheet_id, " begins, seeds ",
              write.first_seed, " to ", write.end_seed - 1);
  if (MustBeRefused(write)) {
    Violate("round ", write.round, " of sheet ", write.sheet_id, " is begun out of turn");
  }
  Sheet& sheet = sheets_[write.sheet_id];
  CheckSeeds(write, sheet);
  sheet.rounds.push_back(
      {.first_seed = write.first_seed, .end_seed = write.end_seed, .cells_json = write.cells_json});
}

void SheetLedger::On(const store::EndRound& write, const store::RoundEnded& ended) {
  if (!ended.applied) return;
  world_.Note("  round ", write.round, " of sheet ", write.sheet_id, " ends");
  if (MustBeRefused(write)) {
    Violate("round ", write.round, " of sheet ", write.sheet_id, " ends out of turn");
    return;
  }
  ended_ += 1;
  sheets_[write.sheet_id].rounds.back().ended = true;
}

void SheetLedger::Told(const v1::Settlement& settlement) {
  const v1::SheetRow& row = settlement.sheet();
  const auto found = sheets_.find(row.sheet_id());
  if (found == sheets_.end()) {
    Violate("a settler is told of sheet ", row.sheet_id(), ", which is not registered");
    return;
  }
  const Sheet& sheet = found->second;
  const auto begun = static_cast<std::int64_t>(sheet.rounds.size());
  if (row.rounds() > begun || row.ended_rounds() > sheet.ended()) {
    Violate("a settler is told of ", row.ended_rounds(), " ended of ", row.rounds(),
            " rounds, and ", sheet.ended(), " of ", begun, " are stored");
  }
  const bool settled = !settlement.has_open() && !settlement.has_next();
  if (settled && (begun == 0 || sheet.ended() != begun)) {
    Violate("a settler is told that sheet ", row.sheet_id(), " is settled, and round ", begun,
            " has not ended");
  }
}

std::map<std::int64_t, SheetLedger::Sheet> SheetLedger::Read(store::Store& store) const {
  std::map<std::int64_t, Sheet> found;
  SQLite::Statement sheets =
      Query(store,
            "SELECT sheet_id, printf('%s %d %d %d %s', sha256, first_seed, fresh_from, slots, "
            "document) FROM sheets");
  while (sheets.executeStep()) {
    const std::int64_t id = sheets.getColumn(0).getInt64();
    found[id].registration = sheets.getColumn(1).getString();
    const auto known = sheets_.find(id);
    if (known != sheets_.end()) found[id].max_seeds = known->second.max_seeds;
  }
  SQLite::Statement rounds =
      Query(store,
            "SELECT sheet_id, first_seed, end_seed, cells_json, ended_at IS NOT NULL "
            "FROM sheet_rounds ORDER BY sheet_id, round");
  while (rounds.executeStep()) {
    found[rounds.getColumn(0).getInt64()].rounds.push_back(
        {.first_seed = rounds.getColumn(1).getInt64(),
         .end_seed = rounds.getColumn(2).getInt64(),
         .cells_json = rounds.getColumn(3).getString(),
         .ended = rounds.getColumn(4).getInt() != 0});
  }
  return found;
}

void SheetLedger::CompareSheet(std::int64_t sheet_id, const Sheet& before, const Sheet& now,
                               bool unknown) {
  if (!before.registration.empty() && before.registration != now.registration) {
    Violate("sheet ", sheet_id, " is registered otherwise than it was");
  }
  if (now.rounds.size() < before.rounds.size() ||
      (!unknown && now.rounds.size() > before.rounds.size())) {
    Violate("sheet ", sheet_id, " had ", before.rounds.size(), " rounds; after the restart ",
            now.rounds.size());
    return;
  }
  for (std::size_t i = 0; i < before.rounds.size(); ++i) {
    const Round& was = before.rounds[i];
    const Round& is = now.rounds[i];
    const bool same = is.first_seed == was.first_seed && is.end_seed == was.end_seed &&
                      is.cells_json == was.cells_json;
    const bool ends = is.ended == was.ended || (unknown && is.ended);
    if (!same || !ends) Violate("round ", i + 1, " of sheet ", sheet_id, " is another one");
  }
}

void SheetLedger::Compare(store::Store& store, bool unknown) {
  std::map<std::int64_t, Sheet> found = Read(store);
  for (const auto& [id, before] : sheets_) {
    const auto now = found.find(id);
    if (now == found.end()) {
      Violate("sheet ", id, " was registered and is gone");
      continue;
    }
    CompareSheet(id, before, now->second, unknown);
  }
  if (!unknown && found.size() > sheets_.size()) Violate("there is a sheet out of nothing");
  sheets_ = std::move(found);
}

void SheetLedger::CheckEnd(db::Reader& reader, store::Store& store) {
  for (const auto& [id, sheet] : sheets_) CheckSheet(id, reader, store);
}

void SheetLedger::CheckSheet(std::int64_t sheet_id, db::Reader& reader, store::Store& store) {
  static auto* const all = new settle::Sheets;  // binding a sheet takes longer than a history
  const auto sheet = all->Load(reader, absl::StrCat(sheet_id));
  const auto rows =
      sheet.ok() ? settle::RowsOf(reader, *sheet) : absl::StatusOr<claims::StoredRows>();
  if (!rows.ok()) return Violate("sheet ", sheet_id, " cannot be read");
  const std::int64_t sweep_id = sheet->row.sweep_id();
  SQLite::Statement changed = Query(store, kChangedOutcomes);
  changed.bind(1, sweep_id);
  changed.executeStep();
  if (changed.getColumn(0).getInt() != 0) return;
  compared_ += 1;
  const StoredLines found = StoredLinesOf(reader, sheet_id);
  const auto wanted = Undisturbed(*sheet, claims::OutcomesOf(*sheet->bound, *rows), found);
  const auto& stored = found.lines;
  const auto [want, have] =
      std::mismatch(wanted.begin(), wanted.end(), stored.begin(), stored.end());
  if (want != wanted.end() || have != stored.end()) {
    Violate("undisturbed, sheet ", sheet_id, " has \"", want == wanted.end() ? "" : *want,
            "\", and it has \"", have == stored.end() ? "" : *have, "\"");
  }
  CheckJobs(sweep_id, sheets_.at(sheet_id), store);
}

// No seed is spent on a cell that no open claim needs.
void SheetLedger::CheckJobs(std::int64_t sweep_id, const Sheet& sheet, store::Store& store) {
  if (extended_.count(sweep_id) != 0) return;
  std::int64_t wanted = 0;
  for (const Round& round : sheet.rounds) {
    const auto commas = std::count(round.cells_json.begin(), round.cells_json.end(), ',');
    wanted += (commas + 1) * (round.end_seed - round.first_seed);
  }
  SQLite::Statement jobs = Query(store, "SELECT count(*) FROM sweep_jobs WHERE sweep_id = ?");
  jobs.bind(1, sweep_id);
  jobs.executeStep();
  if (jobs.getColumn(0).getInt64() == wanted) return;
  Violate("the rounds of sheet ", sheet.registration.substr(0, 6), " have ", wanted,
          " jobs, and its sweep has ", jobs.getColumn(0).getInt64());
}

}  // namespace pelab::sim
