// Writes about workers, attempts and logs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/event/enums.h"
#include "server/limits.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"

namespace pelab::store {
namespace {

// Whether every sweep that claims the job is paused, or cancelled and not dropped yet. Nearly
// always no sweep is paused or being dropped, and the first query is enough.
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

TraceContext TraceOfSweep(Database& db, std::int64_t sweep_id) {
  if (sweep_id == 0) return {};
  Query row = db.Run("SELECT trace_id, span_id FROM sweeps WHERE sweep_id = ?", sweep_id);
  return row.Step() ? TraceContext{row.Text(0), row.Text(1)} : TraceContext{};
}

constexpr std::size_t kLeastIdPrefix = 6;

struct NamedWorker {
  std::string worker_id;
  std::string name;
  std::string host;
  std::string drain;
};

// Finds the workers that `text` names. A full id takes precedence over names; then comes a name
// that only one worker has.
std::vector<NamedWorker> FindWorkers(Database& db, const std::string& text) {
  std::vector<NamedWorker> found;
  Query rows = db.Run(
      "SELECT worker_id, name, host, coalesce(drain, '') FROM v_workers WHERE worker_id = ?1 OR "
      "name = ?1 OR host = ?1 OR (length(?1) >= ?2 AND substr(worker_id, 1, length(?1)) = ?1) "
      "ORDER BY worker_id = ?1 DESC, worker_id",
      text, static_cast<std::int64_t>(kLeastIdPrefix));
  while (rows.Step()) {
    found.push_back({rows.Text(0), rows.Text(1), rows.Text(2), rows.Text(3)});
    if (found[0].worker_id == text) return found;
  }
  const auto is_named = [&text](const NamedWorker& worker) { return worker.name == text; };
  if (std::count_if(found.begin(), found.end(), is_named) == 1) {
    return {*std::find_if(found.begin(), found.end(), is_named)};
  }
  return found;
}

// How many leading characters distinguish the ids, which are sorted.
std::size_t CharactersThatDiffer(const std::vector<NamedWorker>& workers) {
  std::size_t most = kLeastIdPrefix;
  for (std::size_t i = 1; i < workers.size(); ++i) {
    const std::string& a = workers[i - 1].worker_id;
    const std::string& b = workers[i].worker_id;
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    most = std::max<std::size_t>(most, differ.first - a.begin() + 1);
  }
  return most;
}

// Why `text` does not name exactly one worker, and what to give instead.
std::string WhyNotOne(Database& db, const std::string& text,
                      const std::vector<NamedWorker>& named) {
  if (named.size() > 1) {
    const std::size_t characters = CharactersThatDiffer(named);
    std::vector<std::string> ids;
    ids.reserve(named.size());
    for (const NamedWorker& worker : named) ids.push_back(worker.worker_id.substr(0, characters));
    return absl::StrCat("\"", text, "\" names ", named.size(), " workers; give the first ",
                        characters, " characters of an id: ", absl::StrJoin(ids, ", "));
  }
  Query begins = db.Run(
      "SELECT 1 FROM workers WHERE substr(worker_id, 1, length(?1)) = ?1 AND ?1 <> '' LIMIT 1",
      text);
  if (begins.Step()) {
    return absl::StrCat("\"", text, "\" is too short for an id; give its first ", kLeastIdPrefix,
                        " characters or more, or the worker's name");
  }
  return absl::StrCat("no worker \"", text,
                      "\" is known; `pelab workers` lists their names and ids");
}

// The principal that first said hello as this worker; nullopt: nobody did, or nobody in particular.
std::optional<std::string> PrincipalOfWorker(Database& db, const std::string& worker_id) {
  Query row =
      db.Run("SELECT principal FROM workers WHERE worker_id = ? AND principal <> ''", worker_id);
  if (!row.Step()) return std::nullopt;
  return row.Text(0);
}

// Forgets workers that are offline and never had an attempt, the longest gone first, before a new
// one is added to very many. Whoever makes up ids would otherwise fill the list for good.
void MakeRoomFor(Database& db, const std::string& worker_id) {
  constexpr std::int64_t kAtOnce = 100;
  if (db.Run("SELECT 1 FROM workers WHERE worker_id = ?", worker_id).Step()) return;
  {
    Query count = db.Run("SELECT count(*) FROM workers");
    if (!count.Step() || count.Int(0) < limits::kWorkers) return;
  }
  db.Execute(
      "DELETE FROM workers WHERE worker_id IN (SELECT worker_id FROM workers AS w "
      "WHERE state = 'offline' AND drain IS NULL AND NOT EXISTS "
      "(SELECT 1 FROM attempts AS a WHERE a.worker_id = w.worker_id) "
      "ORDER BY last_seen_at LIMIT ?)",
      kAtOnce);
}

}  // namespace

WriteResult Do(Batch& batch, const WorkerHello& write) {
  if (const auto owner = PrincipalOfWorker(batch.db, write.worker_id);
      owner && *owner != write.principal && !write.principal.empty()) {
    return WorkerStored{
        .refused = absl::StrCat("worker ", write.worker_id, " belongs to another principal; a ",
                                "worker with a --workdir of its own has an id of its own")};
  }
  MakeRoomFor(batch.db, write.worker_id);
  batch.db.Execute(
      "INSERT INTO workers (worker_id, name, host, version, slots_json, slots, "
      "capabilities_json, principal, state, last_seen_at) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'online', ?) "
      "ON CONFLICT (worker_id) DO UPDATE SET name = excluded.name, host = excluded.host, "
      "version = excluded.version, "
      "slots_json = excluded.slots_json, slots = excluded.slots, "
      "capabilities_json = excluded.capabilities_json, "
      "principal = iif(excluded.principal = '', principal, excluded.principal), "
      "state = 'online', "
      "last_seen_at = excluded.last_seen_at",
      write.worker_id, write.name, write.host, write.version, write.slots_json, write.slots,
      write.capabilities_json, write.principal, write.now);
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
  if (drain.Step()) {
    result.drain = event::ParseDrain(drain.Text(0)).value_or(v1::Drain::FINISH);
  }
  return result;
}

WriteResult Do(Batch& batch, const DrainWorker& write) {
  WorkerDrained result;
  const std::vector<NamedWorker> named = FindWorkers(batch.db, write.worker);
  if (named.size() != 1) {
    result.refused = WhyNotOne(batch.db, write.worker, named);
    return result;
  }
  const std::string before = named[0].drain;
  result.worker_id = named[0].worker_id;
  result.name = named[0].name;
  result.host = named[0].host;
  {
    Query open = batch.db.Run(
        "SELECT count(DISTINCT slot), count(*) FROM attempts "
        "WHERE worker_id = ? AND outcome IS NULL",
        result.worker_id);
    open.Step();
    result.busy_slots = static_cast<int>(open.Int(0));
    result.attempts = static_cast<int>(open.Int(1));
  }
  const std::string drain = event::NameOf(write.drain);
  result.changed = before != drain;
  batch.db.Execute("UPDATE workers SET drain = nullif(?, '') WHERE worker_id = ?", drain,
                   result.worker_id);
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
  const TraceContext sweep =
      write.span_id.empty() ? TraceContext() : TraceOfSweep(batch.db, write.sweep_id);
  batch.db.Execute(
      "INSERT INTO attempts (job_id, number, token, worker_id, slot, device, analyses_json, "
      "started_at, principal, trace_id, span_id, parent_span_id) SELECT job_id, attempts, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ? FROM jobs WHERE job_id = ?",
      write.token, write.worker_id, write.slot, write.device,
      AnalysesToJson(NeededAnalyses(batch.db, write.job_id)), write.now, write.principal,
      sweep.trace_id, sweep.trace_id.empty() ? std::string() : write.span_id, sweep.span_id,
      write.job_id);
  return AttemptCreated{
      .assignment = std::make_shared<Assignment>(LoadAssignment(batch.db, batch.db.LastId()))};
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
  result.change = SharedMove(batch, job_id,
                             {.event = write.event,
                              .error = write.error,
                              .now = write.now,
                              .never_started = write.event == state::Event::kPreempt});
  if (result.change) result.status = EventStored::kStored;
  return result;
}

WriteResult Do(Batch& batch, const AppendLog& write) {
  AttemptRow* row = batch.Load(write.attempt_id);
  if (!IsOf(row, write.token, write.worker) || write.data.empty()) return Nothing{};
  if (write.offset > limits::kLogOffset) return Nothing{};  // a log may be lost
  // Bytes that are stored already are skipped. Otherwise overlapping pieces could grow without
  // limit.
  std::uint64_t end = 0;
  {
    Query stored = batch.db.Run(
        "SELECT coalesce(max(byte_offset + length(data)), 0) FROM logs WHERE attempt_id = ?",
        write.attempt_id);
    if (stored.Step()) end = static_cast<std::uint64_t>(stored.Int(0));
  }
  const std::uint64_t known = end > write.offset ? end - write.offset : 0;
  if (known >= write.data.size()) return Nothing{};
  const std::string more = write.data.substr(known);
  batch.db.Execute("INSERT INTO logs (attempt_id, byte_offset, data) VALUES (?, ?, ?)",
                   write.attempt_id, write.offset + known, Blob{more});
  batch.db.Execute("DELETE FROM logs WHERE attempt_id = ?1 AND byte_offset + length(data) <= ?2",
                   write.attempt_id,
                   static_cast<std::int64_t>(write.offset + write.data.size()) - kKeptLogBytes);
  return Nothing{};
}

}  // namespace pelab::store
