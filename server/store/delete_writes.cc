// Deleting a sweep: at once for readers, in slices for the database.
#include <cstdint>
#include <limits>
#include <vector>

#include "server/store/batch.h"
#include "server/store/sweeps.h"

namespace pelab::store {
namespace {

// Limits of one slice. Most of a job's rows are its curve, which may have hundreds.
constexpr int kDeletedJobs = 50;
constexpr int kDeletedRows = 5000;

struct Doomed {
  std::int64_t ordinal = 0;
  std::int64_t job_id = 0;
  state::JobState state = state::JobState::kQueued;
  std::int64_t configuration_id = 0;
  bool shared = false;  // another sweep has it, whether or not it claims it
};

std::vector<Doomed> SomeOf(Database& db, std::int64_t sweep_id, std::int64_t from, int limit) {
  std::vector<Doomed> jobs;
  Query rows = db.Run(
      "SELECT c.ordinal, c.job_id, j.state, coalesce(j.configuration_id, 0), EXISTS (SELECT 1 "
      "FROM sweep_jobs AS o WHERE o.job_id = c.job_id AND o.sweep_id <> c.sweep_id) "
      "FROM sweep_jobs AS c CROSS JOIN jobs AS j USING (job_id) "
      "WHERE c.sweep_id = ? AND c.ordinal >= ? ORDER BY c.ordinal LIMIT ?",
      sweep_id, from, limit);
  while (rows.Step()) {
    jobs.push_back({.ordinal = rows.Int(0),
                    .job_id = rows.Int(1),
                    .state = *state::ParseJobState(rows.Text(2)),
                    .configuration_id = rows.Int(3),
                    .shared = rows.Int(4) != 0});
  }
  return jobs;
}

// Reports the files that the job's rows refer to, because they may be unused from now on.
void DropFiles(Batch& batch, std::int64_t job_id) {
  Query files = batch.db.Run(
      "SELECT f.sha256 FROM artifacts AS f JOIN attempts AS a USING (attempt_id) "
      "WHERE a.job_id = ?1 UNION SELECT u.sha256 FROM uploads AS u JOIN attempts AS a "
      "USING (attempt_id) WHERE a.job_id = ?1 UNION SELECT sha256 FROM checkpoints "
      "WHERE job_id = ?1",
      job_id);
  while (files.Step()) batch.dropped_files.push_back(files.Text(0));
}

// Deletes everything that is stored about the job. Returns the number of deleted rows, without
// staged epochs and configurations.
int DeleteJob(Batch& batch, const Doomed& job) {
  batch.staging.MoveJob(job.job_id);  // so that all of its epochs are in `curves`
  DropFiles(batch, job.job_id);
  int rows = 0;
  for (const char* sql :
       {"DELETE FROM deposit_indices WHERE analysis_id IN "
        "(SELECT analysis_id FROM analyses WHERE job_id = ?)",
        "DELETE FROM head_ablation WHERE analysis_id IN "
        "(SELECT analysis_id FROM analyses WHERE job_id = ?)",
        "DELETE FROM analyses WHERE job_id = ?", "DELETE FROM analysis_requests WHERE job_id = ?",
        "DELETE FROM checkpoints WHERE job_id = ?",
        "DELETE FROM uploads WHERE attempt_id IN "
        "(SELECT attempt_id FROM attempts WHERE job_id = ?)",
        "DELETE FROM artifacts WHERE attempt_id IN "
        "(SELECT attempt_id FROM attempts WHERE job_id = ?)",
        "DELETE FROM logs WHERE attempt_id IN (SELECT attempt_id FROM attempts WHERE job_id = ?)",
        "DELETE FROM curves WHERE attempt_id IN "
        "(SELECT attempt_id FROM attempts WHERE job_id = ?)",
        "DELETE FROM attempts WHERE job_id = ?", "DELETE FROM sweep_jobs WHERE job_id = ?",
        "DELETE FROM jobs WHERE job_id = ?"}) {
    rows += batch.db.Execute(sql, job.job_id);
  }
  batch.db.Execute(
      "DELETE FROM configurations WHERE configuration_id = ?1 AND NOT EXISTS "
      "(SELECT 1 FROM jobs WHERE configuration_id = ?1)",
      job.configuration_id);
  batch.facts.erase(job.configuration_id);  // a later configuration may get its number
  return rows;
}

// Cancels the job if it is still open, because no live sweep waits for it any more. Returns whether
// it has an open attempt, which its worker still holds.
bool Stop(Batch& batch, const Doomed& job, std::int64_t now, Cancelled& cancelled) {
  const std::optional<std::int64_t> open = OpenAttemptOf(batch.db, job.job_id);
  if (!state::IsTerminal(job.state) &&
      Move(batch, job.job_id, {.event = state::Event::kClaimsGone, .error = "", .now = now})) {
    cancelled.jobs.push_back(job.job_id);
    if (open) cancelled.attempts.push_back(*open);
  }
  return open.has_value();
}

void DeleteRows(Batch& batch, std::int64_t sweep_id) {
  batch.db.Execute("DELETE FROM submissions WHERE sweep_id = ?", sweep_id);
  batch.db.Execute("DELETE FROM sweep_counts WHERE sweep_id = ?", sweep_id);
  batch.db.Execute("DELETE FROM sweeps WHERE sweep_id = ?", sweep_id);
  batch.gone.insert(sweep_id);
}

void DeleteSome(Batch& batch, std::int64_t sweep_id, const SweepRow& sweep, std::int64_t now,
                SweepDeleted& result) {
  if (sweep.drop_from) {  // its claims are still being withdrawn
    result.more = result.waits = true;
    return;
  }
  const std::vector<Doomed> jobs = SomeOf(batch.db, sweep_id, 0, kChangedJobs);
  int deleted = 0;
  int rows = 0;
  for (const Doomed& job : jobs) {
    if (deleted == kDeletedJobs || rows >= kDeletedRows) break;
    if (job.shared) {
      batch.db.Execute("DELETE FROM sweep_jobs WHERE sweep_id = ? AND ordinal = ?", sweep_id,
                       job.ordinal);
      result.jobs_kept += 1;
      continue;
    }
    if (Stop(batch, job, now, result.cancelled)) continue;
    rows += DeleteJob(batch, job);
    result.jobs_deleted += 1;
    ++deleted;
  }
  result.more =
      batch.db.Run("SELECT 1 FROM sweep_jobs WHERE sweep_id = ? LIMIT 1", sweep_id).Step();
  result.waits = result.more && result.jobs_deleted + result.jobs_kept == 0;
  if (!result.more) DeleteRows(batch, sweep_id);
}

}  // namespace

WriteResult Do(Batch& batch, const DeleteSweep& write) {
  const std::optional<SweepRow> sweep = LoadSweep(batch.db, write.sweep_id);
  SweepDeleted result;
  if (!sweep || sweep->deleted) return result;
  result.found = true;
  result.live = sweep->live();
  if (result.live) return result;
  // The token can be used again: the same document may be submitted again.
  batch.db.Execute(
      "UPDATE sweeps SET deleted = 1, client_token = 'deleted ' || sweep_id WHERE sweep_id = ?",
      write.sweep_id);
  batch.db.Execute("DELETE FROM submissions WHERE sweep_id = ?", write.sweep_id);
  batch.db.Execute("UPDATE sheets SET sweep_id = NULL WHERE sweep_id = ?", write.sweep_id);
  DeleteSome(batch, write.sweep_id, *sweep, write.now, result);
  return result;
}

WriteResult Do(Batch& batch, const DeleteSlice& write) {
  const std::optional<SweepRow> sweep = LoadSweep(batch.db, write.sweep_id);
  SweepDeleted result;
  if (!sweep || !sweep->deleted) return result;
  result.found = true;
  DeleteSome(batch, write.sweep_id, *sweep, write.now, result);
  return result;
}

WriteResult Do(Batch& batch, const CountDeletion& write) {
  DeletionCounted result;
  const std::vector<Doomed> jobs = SomeOf(batch.db, write.sweep_id, write.from, kScannedJobs);
  for (const Doomed& job : jobs) (job.shared ? result.jobs_kept : result.jobs_deleted) += 1;
  if (static_cast<int>(jobs.size()) == kScannedJobs) result.next = jobs.back().ordinal + 1;
  return result;
}

}  // namespace pelab::store
