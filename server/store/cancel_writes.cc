// Cancelling by withdrawing claims: at once for the scheduler, in slices for the database.
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "server/store/batch.h"
#include "server/store/sweeps.h"

namespace pelab::store {
namespace {

void Drop(Batch& batch, std::int64_t job_id, std::int64_t now, Cancelled& result) {
  if (const auto open = OpenAttemptOf(batch.db, job_id)) result.attempts.push_back(*open);
  if (Move(batch, job_id, {.event = state::Event::kClaimsGone, .error = "", .now = now})) {
    result.jobs.push_back(job_id);
  }
}

// Leaves the job to a sweep that claims it too, which may demand something else of a slot.
void Leave(Batch& batch, const SweepJob& job, std::int64_t other, Cancelled& result) {
  if (job.state != state::JobState::kQueued || !DemandAs(batch.db, job.job_id, other)) return;
  result.ready.push_back(LoadReady(batch.db, job.job_id));
}

// Stops jobs that run for this sweep alone. There are at most as many as slots and packs allow, so
// this needs no slices.
void StopRunning(Batch& batch, const CancelSweep& write, Cancelled& result) {
  std::vector<std::int64_t> running;
  {
    Query rows = batch.db.Run(
        "SELECT a.job_id FROM attempts AS a WHERE a.outcome IS NULL AND EXISTS ("
        "SELECT 1 FROM sweep_jobs AS c WHERE c.job_id = a.job_id AND c.sweep_id = ?) "
        "ORDER BY a.job_id",
        write.sweep_id);
    while (rows.Step()) running.push_back(rows.Int(0));
  }
  for (const std::int64_t job_id : running) {
    if (!IsClaimed(batch.db, job_id)) Drop(batch, job_id, write.now, result);
  }
}

// Continues at ordinal `from`. With `keep_claims` (the sweep had finished before) the claims stay,
// and only the analyses that were being added to its jobs are cancelled.
void DropFrom(Batch& batch, const DropSlice& write, std::int64_t from, bool keep_claims,
              Cancelled& result) {
  const auto jobs = JobsOfSweep(batch.db, write.sweep_id, from, kScannedJobs);
  std::int64_t next = jobs.empty() ? from : jobs.back().ordinal + 1;
  result.more = static_cast<int>(jobs.size()) == kScannedJobs;
  int dropped = 0;
  for (const SweepJob& job : jobs) {
    if (state::IsTerminal(job.state)) continue;
    if (dropped == kChangedJobs) {
      next = job.ordinal;
      result.more = true;
      break;
    }
    if (keep_claims) result.claims_withdrawn += 1;
    if (const std::int64_t other = ClaimantOf(batch.db, job.job_id); other != 0) {
      Leave(batch, job, other, result);
      continue;
    }
    Drop(batch, job.job_id, write.now, result);
    ++dropped;
  }
  if (!keep_claims) {
    result.claims_withdrawn +=
        SetClaimed(batch, write.sweep_id, from,
                   result.more ? next : std::numeric_limits<std::int64_t>::max(), false);
  }
  std::optional<std::int64_t> drop_from;
  if (result.more) drop_from = next;
  batch.db.Execute("UPDATE sweeps SET drop_from = ? WHERE sweep_id = ?", drop_from, write.sweep_id);
}

using SweepPlace = std::pair<std::int64_t, std::int64_t>;  // a sweep and an ordinal in it

std::vector<SweepPlace> ClaimsOn(Database& db, std::int64_t job_id) {
  std::vector<SweepPlace> places;
  Query rows =
      db.Run("SELECT sweep_id, ordinal FROM sweep_jobs WHERE job_id = ? AND claimed = 1", job_id);
  while (rows.Step()) places.emplace_back(rows.Int(0), rows.Int(1));
  return places;
}

}  // namespace

WriteResult Do(Batch& batch, const CancelSweep& write) {
  const std::optional<SweepRow> sweep = LoadSweep(batch.db, write.sweep_id);
  if (!sweep) return Cancelled{};
  Cancelled result{.found = true, .sweep_id = write.sweep_id, .more = sweep->drop_from.has_value()};
  if (!sweep->live()) return result;
  StopCounting(batch, write.sweep_id);
  batch.db.Execute(
      "UPDATE sweeps SET state = ?, reopened = 0, paused = 0, drop_from = 0 WHERE sweep_id = ?",
      sweep->reopened ? "finished" : "cancelled", write.sweep_id);
  batch.ended_sweeps.push_back(write.sweep_id);
  StopRunning(batch, write, result);
  if (sweep->reopened) result.claims_withdrawn += static_cast<std::int64_t>(result.jobs.size());
  DropFrom(batch, {write.sweep_id, write.now}, 0, sweep->reopened, result);
  return result;
}

WriteResult Do(Batch& batch, const DropSlice& write) {
  const std::optional<SweepRow> sweep = LoadSweep(batch.db, write.sweep_id);
  if (!sweep) return Cancelled{};
  Cancelled result{.found = true};
  // The sweep is live again, so its remaining jobs must not be dropped.
  if (sweep->live()) return result;
  result.sweep_id = write.sweep_id;
  if (!sweep->drop_from) return result;
  DropFrom(batch, write, *sweep->drop_from, sweep->state == "finished", result);
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
  if (trained) {  // only the analyses are cancelled: stored results stay claimed
    Drop(batch, write.job_id, write.now, result);
    return result;
  }
  // The open claims are subtracted here, because after they are withdrawn the transition no longer
  // finds them.
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
  for (const auto& [sweep_id, ordinal] : ClaimsOn(batch.db, write.job_id)) {
    SetClaimed(batch, sweep_id, ordinal, ordinal + 1, false);
  }
  Drop(batch, write.job_id, write.now, result);
  return result;
}

}  // namespace pelab::store
