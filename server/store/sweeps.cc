#include "server/store/sweeps.h"

#include "server/store/analyses.h"

namespace pelab::store {

std::optional<SweepRow> LoadSweep(Database& db, std::int64_t sweep_id) {
  Query row = db.Run(
      "SELECT state, expanded_cells, priority, fresh, analyses_json, reopened, paused, drop_from, "
      "cells, expands_again, deleted, protocol, owner FROM sweeps WHERE sweep_id = ?",
      sweep_id);
  if (!row.Step()) return std::nullopt;
  SweepRow sweep{.state = row.Text(0),
                 .cells = static_cast<std::uint64_t>(row.Int(8)),
                 .expanded = static_cast<std::uint64_t>(row.Int(1)),
                 .priority = static_cast<int>(row.Int(2)),
                 .paused = row.Int(6) != 0,
                 .fresh = row.Int(3) != 0,
                 .analyses = AnalysesFromJson(row.Text(4)),
                 .reopened = row.Int(5) != 0,
                 .drop_from = std::nullopt,
                 .expands_again = row.Int(9) != 0,
                 .deleted = row.Int(10) != 0,
                 .protocol = row.Text(11),
                 .owner = row.Text(12)};
  if (!row.IsNull(7)) sweep.drop_from = row.Int(7);
  return sweep;
}

SweepSettings SettingsOf(std::int64_t sweep_id, const SweepRow& sweep) {
  return {.sweep_id = sweep_id,
          .priority = sweep.priority,
          .paused = sweep.paused,
          .owner = sweep.owner};
}

void AddSettings(Database& db, std::int64_t sweep_id, SliceStored& slice) {
  const std::optional<SweepRow> sweep = LoadSweep(db, sweep_id);
  if (sweep && sweep->live()) slice.sweep_settings.push_back(SettingsOf(sweep_id, *sweep));
}

void Reopen(Batch& batch, std::int64_t sweep_id, bool for_analyses, SliceStored& slice) {
  const int reopened = batch.db.Execute(
      "UPDATE sweeps SET state = 'active', reopened = ?, drop_from = NULL "
      "WHERE sweep_id = ? AND state = 'finished'",
      for_analyses, sweep_id);
  if (reopened != 0) {
    CountOpenJobs(batch, sweep_id);
    AddWaiting(batch, sweep_id, slice);
  }
  if (!for_analyses) {
    batch.db.Execute("UPDATE sweeps SET reopened = 0 WHERE sweep_id = ? AND reopened = 1",
                     sweep_id);
  }
}

namespace {

// Selects the claimed open jobs of a sweep (?1: only those that wait). Of the two queries, the one
// that visits fewer rows is used: all open jobs, or all jobs of the sweep.
constexpr char kByOpenJob[] =
    "SELECT j.job_id FROM jobs AS j CROSS JOIN sweep_jobs AS c "
    "INDEXED BY sweep_jobs_by_job ON c.job_id = j.job_id AND c.sweep_id = ?2 AND c.claimed = 1 "
    "WHERE j.state IN ('queued', 'assigned', 'running') AND (NOT ?1 OR j.state = 'queued')";
constexpr char kByJobOfSweep[] =
    "SELECT j.job_id FROM sweep_jobs AS c CROSS JOIN jobs AS j USING (job_id) "
    "WHERE c.sweep_id = ?2 AND c.claimed = 1 "
    "AND j.state IN ('queued', 'assigned', 'running') AND (NOT ?1 OR j.state = 'queued')";

Query ClaimedOpenJobs(Batch& batch, std::int64_t sweep_id, bool only_waiting) {
  std::int64_t open_of_all = 0;
  for (const auto& [id, open] : batch.open_before) open_of_all += open;
  Query size = batch.db.Run("SELECT cells FROM sweeps WHERE sweep_id = ?", sweep_id);
  const bool few_open = size.Step() && open_of_all < size.Int(0);
  return batch.db.Run(few_open ? kByOpenJob : kByJobOfSweep, only_waiting, sweep_id);
}

}  // namespace

void AddWaiting(Batch& batch, std::int64_t sweep_id, SliceStored& slice) {
  std::vector<std::int64_t> jobs;
  {
    Query rows = ClaimedOpenJobs(batch, sweep_id, /*only_waiting=*/true);
    while (rows.Step()) jobs.push_back(rows.Int(0));
  }
  for (const std::int64_t job_id : jobs) slice.ready.push_back(LoadReady(batch.db, job_id));
}

void CountOpenJobs(Batch& batch, std::int64_t sweep_id) {
  std::int64_t open = 0;
  Query rows = ClaimedOpenJobs(batch, sweep_id, /*only_waiting=*/false);
  while (rows.Step()) ++open;
  batch.open_delta[sweep_id] += open;
}

void StopCounting(Batch& batch, std::int64_t sweep_id) {
  batch.open_delta.erase(sweep_id);
  batch.uncounted.insert(sweep_id);
}

int SetClaimed(Batch& batch, std::int64_t sweep_id, std::int64_t from, std::int64_t to,
               bool claimed) {
  {
    Query rows = batch.db.Run(
        "SELECT j.state, j.trained, count(*), sum(j.epochs_done), sum(CASE WHEN j.trained "
        "THEN j.epochs ELSE coalesce(c.withdrawn_epochs, 0) END) FROM sweep_jobs AS c "
        "CROSS JOIN jobs AS j USING (job_id) WHERE c.sweep_id = ? AND c.ordinal >= ? "
        "AND c.ordinal < ? AND c.claimed <> ? GROUP BY j.state, j.trained",
        sweep_id, from, to, claimed);
    while (rows.Step()) {
      const state::JobState state = *state::ParseJobState(rows.Text(0));
      const state::JobState without = WithoutClaim(state, rows.Int(1) != 0);
      CountDelta& delta = batch.counts[sweep_id];
      delta.jobs[static_cast<std::size_t>(claimed ? without : state)] -= rows.Int(2);
      delta.jobs[static_cast<std::size_t>(claimed ? state : without)] += rows.Int(2);
      // A withdrawn claim keeps the epochs that were done until then.
      if (claimed) delta.epochs_done += rows.Int(3) - rows.Int(4);
    }
  }
  return batch.db.Execute(
      "UPDATE sweep_jobs SET claimed = ?4, withdrawn_epochs = CASE WHEN ?4 THEN NULL ELSE "
      "(SELECT j.epochs_done FROM jobs AS j WHERE j.job_id = sweep_jobs.job_id) END "
      "WHERE sweep_id = ?1 AND ordinal >= ?2 AND ordinal < ?3 AND claimed <> ?4",
      sweep_id, from, to, claimed);
}

bool IsClaimed(Database& db, std::int64_t job_id) { return ClaimantOf(db, job_id) != 0; }

std::int64_t ClaimantOf(Database& db, std::int64_t job_id) {
  Query row = db.Run(
      "SELECT sweep_id FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) "
      "WHERE c.job_id = ? AND c.claimed = 1 AND s.state IN ('expanding', 'active') "
      "ORDER BY sweep_id LIMIT 1",
      job_id);
  return row.Step() ? row.Int(0) : 0;
}

bool DemandAs(Database& db, std::int64_t job_id, std::int64_t sweep_id) {
  // Imported sweeps may have other values there, which would break the table's types.
  return db.Execute(
             "UPDATE jobs SET device_kind = s.device, memory_bytes = s.memory FROM "
             "(SELECT resources_json ->> 'device' AS device, "
             "coalesce(resources_json ->> 'memory_bytes', 0) AS memory FROM sweeps "
             "WHERE sweep_id = ?2 AND CASE WHEN json_valid(resources_json) "
             "THEN resources_json ->> 'device' IN ('any', 'gpu', 'cpu') "
             "AND coalesce(json_type(resources_json, '$.memory_bytes'), 'integer') = 'integer' "
             "AND coalesce(resources_json ->> 'memory_bytes', 0) BETWEEN 0 AND 1 << 50 END) AS s "
             "WHERE job_id = ?1 AND (device_kind <> s.device OR memory_bytes <> s.memory)",
             job_id, sweep_id) > 0;
}

std::vector<SweepJob> JobsOfSweep(Database& db, std::int64_t sweep_id, std::int64_t from,
                                  int limit) {
  std::vector<SweepJob> jobs;
  Query rows = db.Run(
      "SELECT c.ordinal, c.job_id, j.state FROM sweep_jobs AS c CROSS JOIN jobs AS j "
      "USING (job_id) WHERE c.sweep_id = ? AND c.ordinal >= ? ORDER BY c.ordinal LIMIT ?",
      sweep_id, from, limit);
  while (rows.Step()) {
    jobs.push_back({.ordinal = rows.Int(0),
                    .job_id = rows.Int(1),
                    .state = *state::ParseJobState(rows.Text(2))});
  }
  return jobs;
}

}  // namespace pelab::store
