// Submitting: creating a sweep or continuing an existing one.
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/json_text.h"
#include "server/store/batch.h"
#include "server/store/sweeps.h"

namespace pelab::store {
namespace {

// Overrides by field. Of two overrides of one field, the later one applies. The name is compared
// separately.
std::map<std::string, std::string> OverridesOf(const std::string& json) {
  std::map<std::string, std::string> overrides;
  const auto array = ParseJson(json);
  if (!array.is_array()) return overrides;
  for (const auto& item : array) {
    if (!item.is_object()) continue;
    overrides[item.value("field", "")] = item.value("value", "");
  }
  overrides.erase("name");
  return overrides;
}

// The answer to a token that was used before; nullopt if it was not.
std::optional<SweepStored> Repeated(Database& db, const SubmitSweep& write) {
  const auto answer = [](std::int64_t sweep_id, bool same, bool went_on) {
    SweepStored stored{.sweep_id = sweep_id};
    if (!same) {
      stored.refusal = SweepStored::kTokenUsed;
    } else {
      stored.repeated_token = true;
      stored.went_on = went_on;
    }
    return stored;
  };
  {
    Query row =
        db.Run("SELECT sweep_id, request_sha256, went_on FROM submissions WHERE client_token = ?",
               write.client_token);
    if (row.Step()) return answer(row.Int(0), row.Text(1) == write.request_sha256, row.Int(2) != 0);
  }
  // The token of a sweep without a submission: it was imported.
  Query row = db.Run(
      "SELECT sweep_id, document = ? AND fresh = ?, overrides_json FROM sweeps "
      "WHERE client_token = ? AND deleted = 0",
      write.document, write.fresh, write.client_token);
  if (!row.Step()) return std::nullopt;
  const bool same =
      row.Int(1) != 0 && OverridesOf(row.Text(2)) == OverridesOf(write.overrides_json);
  return answer(row.Int(0), same, false);
}

// Among the sweeps with this name: the newest that was submitted with the same document, and the
// newest of all. 0: none.
struct Namesakes {
  std::int64_t same = 0;
  std::int64_t newest = 0;
};
Namesakes FindNamesakes(Database& db, const SubmitSweep& write) {
  Namesakes found;
  const auto overrides = OverridesOf(write.overrides_json);
  Query rows = db.Run(
      "SELECT sweep_id, document = ?, overrides_json FROM sweeps WHERE name = ? AND deleted = 0 "
      "ORDER BY sweep_id DESC",
      write.document, write.name);
  while (found.same == 0 && rows.Step()) {
    if (found.newest == 0) found.newest = rows.Int(0);
    if (rows.Int(1) != 0 && OverridesOf(rows.Text(2)) == overrides) found.same = rows.Int(0);
  }
  return found;
}

std::int64_t CancelledJobs(Batch& batch, std::int64_t sweep_id) {
  std::int64_t cancelled = 0;
  Query row = batch.db.Run("SELECT cancelled FROM sweep_counts WHERE sweep_id = ?", sweep_id);
  if (row.Step()) cancelled = row.Int(0);
  const auto delta = batch.counts.find(sweep_id);  // changes of this batch
  if (delta == batch.counts.end()) return cancelled;
  return cancelled + delta->second.jobs[static_cast<std::size_t>(state::JobState::kCancelled)];
}

// Processes the cells of a sweep once more: cancelled jobs are queued, missing jobs are created,
// and missing analyses are added, as `analyses_json` lists them if it is set.
void ExpandAgain(Batch& batch, std::int64_t sweep_id, const SweepRow& sweep,
                 const std::optional<std::string>& analyses_json, SliceStored& jobs) {
  batch.db.Execute(
      "UPDATE sweeps SET state = 'expanding', expanded_cells = 0, expands_again = 1, "
      "reopened = 0, drop_from = NULL, "
      "analyses_json = coalesce(?, analyses_json), new_jobs = 0, stored_jobs = 0, "
      "in_flight_jobs = 0, failed_earlier_jobs = 0, analysis_jobs = 0, "
      "analysis_impossible_jobs = 0 WHERE sweep_id = ?",
      analyses_json, sweep_id);
  if (!sweep.live()) {
    CountOpenJobs(batch, sweep_id);
    AddWaiting(batch, sweep_id, jobs);
  }
}

// Expands a sweep again if it has ended or has cancelled jobs.
SweepStored GoOn(Batch& batch, std::int64_t sweep_id,
                 const std::optional<std::string>& analyses_json) {
  SweepStored stored{.sweep_id = sweep_id, .went_on = true};
  const SweepRow sweep = LoadSweep(batch.db, sweep_id).value_or(SweepRow{});
  stored.reopened = sweep.state == "cancelled" || CancelledJobs(batch, sweep_id) > 0;
  stored.expands_again = stored.reopened || !sweep.live();
  if (stored.expands_again) {
    ExpandAgain(batch, sweep_id, sweep, analyses_json, stored.first);
  }
  AddSettings(batch.db, sweep_id, stored.first);
  return stored;
}

SweepStored Insert(Batch& batch, const SubmitSweep& write) {
  batch.db.Execute(
      "INSERT INTO sweeps (name, protocol, document, file_name, overrides_json, client_token, "
      "analyses_json, resources_json, priority, fresh, state, cells, created_at, owner, trace_id, "
      "span_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'expanding', ?, ?, ?, ?, ?)",
      write.name, write.protocol, write.document, write.file_name, write.overrides_json,
      write.client_token, write.analyses_json, write.resources_json, write.priority, write.fresh,
      write.cells, write.now, write.owner, write.trace.trace_id, write.trace.span_id);
  SweepStored stored{.sweep_id = batch.db.LastId()};
  if (write.first) stored.first = Expand(batch, stored.sweep_id, *write.first);
  return stored;
}

}  // namespace

WriteResult Do(Batch& batch, const ReopenSweep& write) {
  if (!LoadSweep(batch.db, write.sweep_id)) return SweepStored{};
  return GoOn(batch, write.sweep_id, std::nullopt);
}

WriteResult Do(Batch& batch, const SubmitSweep& write) {
  if (auto repeated = Repeated(batch.db, write)) return *std::move(repeated);
  const Namesakes found = write.go_on ? FindNamesakes(batch.db, write) : Namesakes{};
  if (found.same == 0 && found.newest != 0) {
    return SweepStored{.sweep_id = found.newest, .refusal = SweepStored::kNameTaken};
  }
  if (found.same != 0 && !write.any_owner &&
      LoadSweep(batch.db, found.same).value_or(SweepRow{}).owner != write.owner) {
    return SweepStored{.sweep_id = found.same, .refusal = SweepStored::kForeign};
  }
  if (found.same == 0 && write.max_queued != 0) {
    const std::int64_t queued = QueuedOf(batch, write.owner);
    if (queued + static_cast<std::int64_t>(write.cells) > write.max_queued) {
      return SweepStored{.refusal = SweepStored::kFull, .queued = queued};
    }
  }
  if (found.same != 0 && write.priority != 0) {
    batch.db.Execute("UPDATE sweeps SET priority = ? WHERE sweep_id = ?", write.priority,
                     found.same);
  }
  SweepStored stored =
      found.same != 0 ? GoOn(batch, found.same, write.analyses_json) : Insert(batch, write);
  batch.db.Execute(
      "INSERT INTO submissions (client_token, sweep_id, request_sha256, went_on) "
      "VALUES (?, ?, ?, ?)",
      write.client_token, stored.sweep_id, write.request_sha256, stored.went_on);
  return stored;
}

}  // namespace pelab::store
