// Claim sheets: their registration and their rounds.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "server/store/batch.h"
#include "server/store/sweeps.h"

namespace pelab::store {
namespace {

// The seed after the last one below `end` that a job of one of the configurations has.
std::int64_t FreshFrom(Database& db, const RegisterSheet& write) {
  std::int64_t fresh = write.first_seed;
  for (const std::string& spec_template : write.templates) {
    Query row = db.Run(
        "SELECT coalesce(max(seed) + 1, 0) FROM jobs AS j JOIN configurations AS c "
        "USING (configuration_id) WHERE c.template = ? AND j.seed < ?",
        spec_template, write.end_of_seeds);
    if (row.Step()) fresh = std::max(fresh, row.Int(0));
  }
  return fresh;
}

struct LastRound {
  std::int64_t number = 0;  // 0: none was begun
  bool ended = true;
};
LastRound LastRoundOf(Database& db, std::int64_t sheet_id) {
  Query row = db.Run(
      "SELECT round, ended_at IS NOT NULL FROM sheet_rounds WHERE sheet_id = ? "
      "ORDER BY round DESC LIMIT 1",
      sheet_id);
  if (!row.Step()) return {};
  return {row.Int(0), row.Int(1) != 0};
}

// How many claims were put aside after `round` ended or before.
std::int64_t PutAsideAfter(Database& db, std::int64_t sheet_id, std::int64_t round) {
  Query row = db.Run(
      "SELECT count(*) FROM sheet_claims WHERE sheet_id = ? AND round = ? AND "
      "standing = 'put aside'",
      sheet_id, round);
  return row.Step() ? row.Int(0) : 0;
}

// The sheet's sweep as it is stored; 0: it has none.
std::int64_t SweepOf(Database& db, std::int64_t sheet_id) {
  Query row = db.Run("SELECT coalesce(sweep_id, 0) FROM sheets WHERE sheet_id = ?", sheet_id);
  return row.Step() ? row.Int(0) : 0;
}

// The sheet's sweep, made if it is not there. 0: it was deleted.
std::int64_t MakeSweep(Batch& batch, const BeginRound& write) {
  if (const std::int64_t stored = SweepOf(batch.db, write.sheet_id)) return stored;
  if (write.round != 1 || write.sweep == nullptr) return 0;
  const WriteResult result = Do(batch, *write.sweep);
  const auto& stored = std::get<SweepStored>(result);
  if (stored.refusal != SweepStored::kNone) return 0;
  batch.db.Execute("UPDATE sheets SET sweep_id = ? WHERE sheet_id = ?", stored.sweep_id,
                   write.sheet_id);
  return stored.sweep_id;
}

}  // namespace

WriteResult Do(Batch& batch, const RegisterSheet& write) {
  {
    Query row = batch.db.Run("SELECT sheet_id FROM sheets WHERE sha256 = ?", write.sha256);
    if (row.Step()) return SheetRegistered{.sheet_id = row.Int(0)};
  }
  {
    Query row = batch.db.Run("SELECT sheet_id FROM sheets WHERE name = ?", write.name);
    if (row.Step()) return SheetRegistered{.has_name = row.Int(0)};
  }
  const std::int64_t fresh_from = FreshFrom(batch.db, write);
  const std::int64_t first_seed = write.fresh ? fresh_from : write.first_seed;
  if (first_seed + write.max_seeds > write.end_of_seeds) {
    return SheetRegistered{.fresh_from = fresh_from};
  }
  batch.db.Execute(
      "INSERT INTO sheets (name, sha256, document, file_name, sweep_document, first_seed, "
      "fresh_from, slots, owner, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      write.name, write.sha256, write.document, write.file_name, write.sweep_document, first_seed,
      fresh_from, write.slots, write.owner, write.now);
  return SheetRegistered{.sheet_id = batch.db.LastId(), .is_new = true};
}

WriteResult Do(Batch& batch, const BeginRound& write) {
  const LastRound last = LastRoundOf(batch.db, write.sheet_id);
  if (!last.ended || write.round != last.number + 1) return RoundBegun{};
  if (PutAsideAfter(batch.db, write.sheet_id, last.number) != write.put_aside) return RoundBegun{};
  RoundBegun begun{.sweep_id = MakeSweep(batch, write)};
  if (begun.sweep_id == 0) return begun;
  begun.applied = true;
  if (!write.seeds.seeds.empty()) {
    ExtendSweep seeds = write.seeds;
    seeds.sweep_id = begun.sweep_id;
    const WriteResult extended = Do(batch, seeds);
    begun.sweep = std::get<SweepExtended>(extended);
    begun.applied = begun.sweep.applied;
  }
  if (!begun.applied) return begun;
  batch.db.Execute(
      "INSERT INTO sheet_rounds (sheet_id, round, first_seed, end_seed, cells_json, began_at) "
      "VALUES (?, ?, ?, ?, ?, ?)",
      write.sheet_id, write.round, write.first_seed, write.end_seed, write.cells_json, write.now);
  return begun;
}

WriteResult Do(Batch& batch, const EndRound& write) {
  if (PutAsideAfter(batch.db, write.sheet_id, write.round - 1) != write.put_aside) {
    return RoundEnded{};
  }
  const int ended = batch.db.Execute(
      "UPDATE sheet_rounds SET ended_at = ? WHERE sheet_id = ? AND round = ? AND ended_at IS NULL",
      write.now, write.sheet_id, write.round);
  if (ended == 0) return RoundEnded{};
  static const char* const sql = SqlFor(v1::SheetClaimRow::descriptor(),
                                        "INSERT INTO sheet_claims (COLUMNS) VALUES (PARAMETERS)");
  for (const v1::SheetClaimRow& claim : write.claims) batch.db.Execute(sql, claim);
  return RoundEnded{.applied = true};
}

WriteResult Do(Batch& batch, const PutAside& write) {
  const LastRound last = LastRoundOf(batch.db, write.sheet_id);
  if (write.round != (last.ended ? last.number : last.number - 1)) return ClaimsPutAside{};
  for (const std::int64_t position : write.positions) {
    batch.db.Execute(
        "UPDATE sheet_claims SET standing = 'put aside' WHERE sheet_id = ? AND round = ? AND "
        "position = ? AND standing = 'open'",
        write.sheet_id, write.round, position);
  }
  return ClaimsPutAside{.applied = true};
}

}  // namespace pelab::store
