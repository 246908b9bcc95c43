// Sweeps: submission, expansion in slices, cancelling by claim.
#include <algorithm>
#include <cstdint>

#include "server/store/analyses.h"
#include "server/store/batch.h"

namespace pelab::store {
namespace {

using state::JobState;

// What a cell finds in the database.
struct Existing {
  std::int64_t job_id = 0;
  int generation = 0;
  JobState state = JobState::kQueued;
};

// The generation that a submission joins: the latest that was trained, else the latest.
std::optional<Existing> Find(Database& db, const std::string& key) {
  Query row = db.Run(
      "SELECT job_id, generation, state FROM jobs WHERE key = ? "
      "ORDER BY trained DESC, generation DESC LIMIT 1",
      key);
  if (!row.Step()) return std::nullopt;
  return Existing{row.Int(0), static_cast<int>(row.Int(1)), *state::ParseJobState(row.Text(2))};
}

int LatestGeneration(Database& db, const std::string& key) {
  Query row = db.Run("SELECT coalesce(max(generation), 0) FROM jobs WHERE key = ?", key);
  row.Step();
  return static_cast<int>(row.Int(0));
}

bool Claims(Database& db, std::int64_t sweep_id, std::int64_t job_id) {
  return db.Run("SELECT 1 FROM sweep_jobs WHERE job_id = ? AND sweep_id = ?", job_id, sweep_id)
      .Step();
}

// Two cells of one sweep may be the same job; the second is no job of its own.
bool ClaimsKey(Database& db, std::int64_t sweep_id, const std::string& key) {
  return db
      .Run(
          "SELECT 1 FROM jobs AS j JOIN sweep_jobs AS c ON c.job_id = j.job_id "
          "AND c.sweep_id = ? WHERE j.key = ?",
          sweep_id, key)
      .Step();
}

struct SweepRow {
  std::string state;
  std::uint64_t expanded = 0;
  int priority = 0;
  bool fresh = false;
  std::vector<Analysis> analyses;
  bool reopened = false;
};

std::optional<SweepRow> LoadSweep(Database& db, std::int64_t sweep_id) {
  Query row = db.Run(
      "SELECT state, expanded_cells, priority, fresh, analyses_json, reopened FROM sweeps "
      "WHERE sweep_id = ?",
      sweep_id);
  if (!row.Step()) return std::nullopt;
  return SweepRow{.state = row.Text(0),
                  .expanded = static_cast<std::uint64_t>(row.Int(1)),
                  .priority = static_cast<int>(row.Int(2)),
                  .fresh = row.Int(3) != 0,
                  .analyses = AnalysesFromJson(row.Text(4)),
                  .reopened = row.Int(5) != 0};
}

struct Counts {
  int fresh = 0;
  int stored = 0;
  int in_flight = 0;
  int failed = 0;
  int analysis = 0;
  int analysis_impossible = 0;
};

class Slice {
 public:
  Slice(Batch& batch, const ExpandSlice& write, const SweepRow& sweep)
      : batch_(batch), write_(write), sweep_(sweep), versions_(VersionsOf(sweep.analyses)) {}

  void Add(const NewCell& cell) {
    if (sweep_.fresh) {
      if (!ClaimsKey(batch_.db, write_.sweep_id, cell.key)) {
        Create(cell, LatestGeneration(batch_.db, cell.key) + 1);
      }
      return;
    }
    const std::optional<Existing> existing = Find(batch_.db, cell.key);
    if (!existing) return Create(cell, 1);
    if (Claims(batch_.db, write_.sweep_id, existing->job_id)) return;
    Join(cell, *existing);
  }

  const Counts& counts() const { return counts_; }
  SliceStored& result() { return result_; }

 private:
  void Claim(const NewCell& cell, std::int64_t job_id, bool open) {
    batch_.db.Execute("INSERT INTO sweep_jobs (sweep_id, ordinal, job_id) VALUES (?, ?, ?)",
                      write_.sweep_id, cell.ordinal, job_id);
    if (open) batch_.open_delta[write_.sweep_id] += 1;
  }

  void Create(const NewCell& cell, int generation) {
    batch_.db.Execute(
        "INSERT INTO jobs (key, generation, pe, pe_label, task, protocol, seed, spec_json, "
        "device_kind, memory_bytes, state, priority, epochs, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?)",
        cell.key, generation, cell.requirement.pe, cell.pe_label, cell.requirement.task,
        cell.protocol_label, cell.seed, cell.spec_json, cell.requirement.device_kind,
        cell.requirement.memory_bytes, sweep_.priority, cell.epochs, write_.now);
    const std::int64_t job_id = batch_.db.LastId();
    Claim(cell, job_id, /*open=*/true);
    counts_.fresh += 1;
    result_.ready.push_back({.job_id = job_id,
                             .sweep_id = write_.sweep_id,
                             .ordinal = static_cast<std::int64_t>(cell.ordinal),
                             .priority = sweep_.priority,
                             .requirement = cell.requirement});
    result_.ready.back().requirement.analyses = versions_;
  }

  void Join(const NewCell& cell, const Existing& existing) {
    switch (existing.state) {
      case JobState::kSucceeded:
        return JoinTrained(cell, existing);
      case JobState::kFailed:
        counts_.failed += 1;
        return Claim(cell, existing.job_id, false);
      case JobState::kQueued:
      case JobState::kAssigned:
      case JobState::kRunning:
        counts_.in_flight += 1;
        Claim(cell, existing.job_id, true);
        return Raise(existing);
      case JobState::kCancelled:
        return Revive(cell, existing);
    }
  }

  // The job goes with the most urgent of the sweeps that claim it, and where all of them are
  // served.
  void Raise(const Existing& existing) {
    const int changed =
        batch_.db.Execute("UPDATE jobs SET priority = ? WHERE job_id = ? AND priority < ?",
                          sweep_.priority, existing.job_id, sweep_.priority);
    if (existing.state != JobState::kQueued) return;
    ReadyJob job = LoadReady(batch_.db, existing.job_id);
    if (changed != 0 || !job.requirement.analyses.empty()) result_.ready.push_back(std::move(job));
  }

  // A trained job that lacks some of the sweep's analyses is queued again to get them.
  void JoinTrained(const NewCell& cell, const Existing& existing) {
    counts_.stored += 1;
    const std::int64_t job_id = existing.job_id;
    const bool lacks = !MissingAnalyses(batch_.db, job_id, sweep_.analyses).empty();
    const bool possible = lacks && FindWeights(batch_, job_id);
    if (lacks && !possible) counts_.analysis_impossible += 1;
    if (!possible || !QueueForAnalyses(batch_, job_id, write_.now, result_.superseded)) {
      return Claim(cell, job_id, false);
    }
    counts_.analysis += 1;
    batch_.db.Execute("UPDATE jobs SET priority = ? WHERE job_id = ?", sweep_.priority, job_id);
    Claim(cell, job_id, true);
    result_.ready.push_back(LoadReady(batch_.db, job_id));
  }

  void Revive(const NewCell& cell, const Existing& existing) {
    if (const auto open = OpenAttemptOf(batch_.db, existing.job_id)) {
      result_.superseded.push_back(*open);
    }
    Move(batch_, existing.job_id, {.event = state::Event::kRetry, .error = "", .now = write_.now});
    batch_.db.Execute("UPDATE jobs SET priority = ? WHERE job_id = ?", sweep_.priority,
                      existing.job_id);
    Claim(cell, existing.job_id, /*open=*/true);
    counts_.fresh += 1;
    result_.ready.push_back(LoadReady(batch_.db, existing.job_id));
  }

  Batch& batch_;
  const ExpandSlice& write_;
  const SweepRow& sweep_;
  const std::vector<std::pair<std::string, int>> versions_;
  Counts counts_;
  SliceStored result_;
};

// Jobs of a sweep that nobody claims any more after its claims are withdrawn.
constexpr char kUnclaimed[] =
    "SELECT DISTINCT j.job_id, j.state FROM sweep_jobs AS c JOIN jobs AS j USING (job_id) "
    "WHERE c.sweep_id = ? AND j.state IN ('queued', 'assigned', 'running') AND NOT EXISTS ("
    "SELECT 1 FROM sweep_jobs AS o JOIN sweeps AS s USING (sweep_id) "
    "WHERE o.job_id = j.job_id AND o.claimed = 1 AND s.state IN ('expanding', 'active'))";

void Drop(Batch& batch, std::int64_t job_id, std::int64_t now, Cancelled& result) {
  if (const auto open = OpenAttemptOf(batch.db, job_id)) result.attempts.push_back(*open);
  if (Move(batch, job_id, {.event = state::Event::kClaimsGone, .error = "", .now = now})) {
    result.jobs.push_back(job_id);
  }
}

// Withdraws the claims of a sweep; where it was finished before, only the analyses that are being
// added: its results stay claimed.
std::int64_t WithdrawClaims(Batch& batch, std::int64_t sweep_id, bool reopened) {
  std::int64_t open = 0;
  {
    Query row = batch.db.Run(
        "SELECT count(*) FROM sweep_jobs AS c JOIN jobs AS j USING (job_id) "
        "WHERE c.sweep_id = ? AND c.claimed = 1 "
        "AND j.state IN ('queued', 'assigned', 'running')",
        sweep_id);
    row.Step();
    open = row.Int(0);
  }
  batch.open_delta[sweep_id] -= open;
  batch.db.Execute("UPDATE sweeps SET state = ?, reopened = 0 WHERE sweep_id = ?",
                   reopened ? "finished" : "cancelled", sweep_id);
  if (reopened) return open;
  return batch.db.Execute("UPDATE sweep_jobs SET claimed = 0 WHERE sweep_id = ? AND claimed = 1",
                          sweep_id);
}

}  // namespace

WriteResult Do(Batch& batch, const SubmitSweep& write) {
  {
    Query same =
        batch.db.Run("SELECT sweep_id FROM sweeps WHERE client_token = ?", write.client_token);
    if (same.Step()) return SweepStored{same.Int(0), true};
  }
  batch.db.Execute(
      "INSERT INTO sweeps (name, protocol, document, file_name, overrides_json, client_token, "
      "analyses_json, resources_json, priority, fresh, state, cells, created_at) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'expanding', ?, ?)",
      write.name, write.protocol, write.document, write.file_name, write.overrides_json,
      write.client_token, write.analyses_json, write.resources_json, write.priority, write.fresh,
      write.cells, write.now);
  return SweepStored{batch.db.LastId(), false};
}

WriteResult Do(Batch& batch, const ExpandSlice& write) {
  const std::optional<SweepRow> sweep = LoadSweep(batch.db, write.sweep_id);
  if (!sweep || sweep->state != "expanding" || sweep->expanded != write.from) {
    return SliceStored{};
  }
  Slice slice(batch, write, *sweep);
  for (const NewCell& cell : write.cells) slice.Add(cell);
  const Counts& counts = slice.counts();
  batch.db.Execute(
      "UPDATE sweeps SET expanded_cells = ?, new_jobs = new_jobs + ?, "
      "stored_jobs = stored_jobs + ?, in_flight_jobs = in_flight_jobs + ?, "
      "failed_earlier_jobs = failed_earlier_jobs + ?, analysis_jobs = analysis_jobs + ?, "
      "analysis_impossible_jobs = analysis_impossible_jobs + ?, state = ? WHERE sweep_id = ?",
      write.next, counts.fresh, counts.stored, counts.in_flight, counts.failed, counts.analysis,
      counts.analysis_impossible, write.last ? "active" : "expanding", write.sweep_id);
  // Touched, so that a sweep without an open job is finished at once.
  batch.open_delta[write.sweep_id] += 0;
  slice.result().applied = true;
  return std::move(slice.result());
}

WriteResult Do(Batch& batch, const CancelSweep& write) {
  const std::optional<SweepRow> sweep = LoadSweep(batch.db, write.sweep_id);
  if (!sweep) return Cancelled{};
  Cancelled result{.found = true};
  if (sweep->state != "expanding" && sweep->state != "active") return result;
  result.claims_withdrawn = WithdrawClaims(batch, write.sweep_id, sweep->reopened);
  std::vector<std::int64_t> jobs;
  {
    Query unclaimed = batch.db.Run(kUnclaimed, write.sweep_id);
    while (unclaimed.Step()) jobs.push_back(unclaimed.Int(0));
  }
  for (const std::int64_t job_id : jobs) Drop(batch, job_id, write.now, result);
  return result;
}

WriteResult Do(Batch& batch, const CancelJob& write) {
  Cancelled result;
  bool trained = false;
  {
    Query job = batch.db.Run("SELECT state, trained FROM jobs WHERE job_id = ?", write.job_id);
    if (!job.Step()) return result;
    result.found = true;
    if (state::IsTerminal(*state::ParseJobState(job.Text(0)))) return result;
    trained = job.Int(1) != 0;
  }
  if (trained) {  // only the analyses end: what is stored stays claimed
    Drop(batch, write.job_id, write.now, result);
    return result;
  }
  // The claims are counted out by hand: once withdrawn, the transition sees none.
  {
    Query claims = batch.db.Run(
        "SELECT c.sweep_id FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) "
        "WHERE c.job_id = ? AND c.claimed = 1 AND s.state IN ('expanding', 'active')",
        write.job_id);
    while (claims.Step()) {
      batch.open_delta[claims.Int(0)] -= 1;
      result.claims_withdrawn += 1;
    }
  }
  batch.db.Execute("UPDATE sweep_jobs SET claimed = 0 WHERE job_id = ?", write.job_id);
  Drop(batch, write.job_id, write.now, result);
  return result;
}

}  // namespace pelab::store
