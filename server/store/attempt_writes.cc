// Workers, attempts and their logs.
#include <cstdint>

#include "server/store/analyses.h"
#include "server/store/batch.h"

namespace pelab::store {

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
