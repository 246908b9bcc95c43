// Workers, attempts and their logs.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"

namespace pelab::store {
namespace {

// Whether all that claims the job is paused, or cancelled and not yet dropped. Nearly always no
// sweep is either, and the first question is the last.
bool IsHeldBack(Database& db, std::int64_t job_id) {
  Query held = db.Run("SELECT 1 FROM sweeps WHERE paused = 1 OR drop_from IS NOT NULL LIMIT 1");
  if (!held.Step()) return false;
  Query claims = db.Run(
      "SELECT coalesce(max((s.paused = 1 AND c.claimed = 1) OR s.drop_from IS NOT NULL), 0), "
      "coalesce(max(c.claimed = 1 AND s.paused = 0 AND s.state IN ('expanding', 'active')), 0) "
      "FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) WHERE c.job_id = ?",
      job_id);
  return claims.Step() && claims.Int(0) != 0 && claims.Int(1) == 0;
}

}  // namespace

WriteResult Do(Batch& batch, const WorkerHello& write) {
  batch.db.Execute(
      "INSERT INTO workers (worker_id, host, version, slots_json, slots, capabilities_json, "
      "state, last_seen_at) VALUES (?, ?, ?, ?, ?, ?, 'online', ?) "
      "ON CONFLICT (worker_id) DO UPDATE SET host = excluded.host, version = excluded.version, "
      "slots_json = excluded.slots_json, slots = excluded.slots, "
      "capabilities_json = excluded.capabilities_json, state = 'online', "
      "last_seen_at = excluded.last_seen_at",
      write.worker_id, write.host, write.version, write.slots_json, write.slots,
      write.capabilities_json, write.now);
  WorkerStored result;
  for (const Held& held : write.held) {
    HeldStored answer{.attempt_id = held.attempt_id};
    Query row = batch.db.Run(
        "SELECT token, worker_id, last_sequence FROM attempts "
        "WHERE attempt_id = ? AND outcome IS NULL",
        held.attempt_id);
    if (row.Step() && static_cast<std::uint64_t>(row.Int(0)) == held.token &&
        row.Text(1) == write.worker_id) {
      answer.accepted = true;
      answer.acknowledged = static_cast<std::uint64_t>(row.Int(2));
    }
    result.held.push_back(answer);
  }
  Query drain =
      batch.db.Run("SELECT coalesce(drain, '') FROM workers WHERE worker_id = ?", write.worker_id);
  if (drain.Step()) result.drain = drain.Text(0);
  return result;
}

WriteResult Do(Batch& batch, const DrainWorker& write) {
  WorkerDrained result;
  std::string before;
  {
    Query rows = batch.db.Run(
        "SELECT worker_id, host, coalesce(drain, ''), (SELECT count(DISTINCT a.slot) "
        "FROM attempts AS a WHERE a.worker_id = w.worker_id AND a.outcome IS NULL), "
        "(SELECT count(*) FROM attempts AS a WHERE a.worker_id = w.worker_id "
        "AND a.outcome IS NULL) FROM workers AS w WHERE worker_id = ?1 OR host = ?1 "
        "OR (length(?1) >= 6 AND substr(worker_id, 1, length(?1)) = ?1) "
        "ORDER BY worker_id = ?1 DESC",
        write.worker);
    if (!rows.Step()) {
      result.refused = absl::StrCat("no worker \"", write.worker,
                                    "\" is known; `pelab workers` lists their ids and hosts");
      return result;
    }
    result = {.refused = "",
              .worker_id = rows.Text(0),
              .host = rows.Text(1),
              .busy_slots = static_cast<int>(rows.Int(3)),
              .attempts = static_cast<int>(rows.Int(4))};
    before = rows.Text(2);
    if (result.worker_id != write.worker && rows.Step()) {
      return WorkerDrained{
          .refused = absl::StrCat("\"", write.worker,
                                  "\" names several workers; name one by (more of) its id")};
    }
  }
  result.changed = before != write.drain;
  std::optional<std::string> drain;
  if (!write.drain.empty()) drain = write.drain;
  batch.db.Execute("UPDATE workers SET drain = ? WHERE worker_id = ?", drain, result.worker_id);
  return result;
}

WriteResult Do(Batch& batch, const WorkerSeen& write) {
  batch.db.Execute(
      "UPDATE workers SET last_seen_at = max(last_seen_at, ?), "
      "state = CASE ? WHEN '' THEN state ELSE ? END WHERE worker_id = ?",
      write.now, write.state, write.state, write.worker_id);
  return Nothing{};
}

WriteResult Do(Batch& batch, const CreateAttempt& write) {
  if (IsHeldBack(batch.db, write.job_id)) return AttemptCreated{.paused = true};
  if (!Move(batch, write.job_id, {.event = state::Event::kAssign, .error = "", .now = write.now})) {
    return AttemptCreated{};
  }
  batch.db.Execute(
      "INSERT INTO attempts (job_id, number, token, worker_id, slot, device, analyses_json, "
      "started_at) SELECT job_id, attempts, ?, ?, ?, ?, ?, ? FROM jobs WHERE job_id = ?",
      write.token, write.worker_id, write.slot, write.device,
      AnalysesToJson(NeededAnalyses(batch.db, write.job_id)), write.now, write.job_id);
  return AttemptCreated{LoadAssignment(batch.db, batch.db.LastId())};
}

WriteResult Do(Batch& batch, const EndAttempt& write) {
  EventStored result{.attempt_id = write.attempt_id};
  std::int64_t job_id = 0;
  {
    Query row = batch.db.Run("SELECT job_id FROM attempts WHERE attempt_id = ? AND outcome IS NULL",
                             write.attempt_id);
    if (!row.Step()) return result;
    job_id = row.Int(0);
  }
  result.change =
      Move(batch, job_id, {.event = write.event, .error = write.error, .now = write.now});
  if (result.change) result.status = EventStored::kStored;
  return result;
}

WriteResult Do(Batch& batch, const AppendLog& write) {
  AttemptRow* row = batch.Load(write.attempt_id);
  if (row == nullptr || row->token != write.token || write.data.empty()) return Nothing{};
  batch.db.Execute("INSERT OR IGNORE INTO logs (attempt_id, byte_offset, data) VALUES (?, ?, ?)",
                   write.attempt_id, write.offset, Blob{write.data});
  batch.db.Execute(
      "DELETE FROM logs WHERE attempt_id = ?1 AND byte_offset + length(data) <= "
      "(SELECT max(byte_offset + length(data)) FROM logs WHERE attempt_id = ?1) - ?2",
      write.attempt_id, kKeptLogBytes);
  return Nothing{};
}

}  // namespace pelab::store
