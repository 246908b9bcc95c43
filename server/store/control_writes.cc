// Changes that people make while sweeps run: pause, priority, retry, extend, name and note.
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/batch.h"
#include "server/store/sweeps.h"

namespace pelab::store {
namespace {

using state::JobState;

// Makes the finished sweeps that claim the job wait for it again.
void ReopenAll(Batch& batch, std::int64_t job_id, SliceStored& jobs) {
  std::vector<std::int64_t> finished;
  {
    Query rows = batch.db.Run(
        "SELECT c.sweep_id FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) "
        "WHERE c.job_id = ? AND c.claimed = 1 AND s.state = 'finished'",
        job_id);
    while (rows.Step()) finished.push_back(rows.Int(0));
  }
  for (const std::int64_t sweep_id : finished) {
    Reopen(batch, sweep_id, /*for_analyses=*/false, jobs);
    AddSettings(batch.db, sweep_id, jobs);
  }
}

// Queues the job again for this sweep, with fresh budgets.
void TryAgain(Batch& batch, std::int64_t sweep_id, std::int64_t job_id, std::int64_t now,
              Retried& result) {
  {
    Query withdrawn = batch.db.Run(
        "SELECT ordinal FROM sweep_jobs INDEXED BY sweep_jobs_by_job "
        "WHERE job_id = ? AND sweep_id = ? AND claimed = 0",
        job_id, sweep_id);
    if (withdrawn.Step()) {
      const std::int64_t ordinal = withdrawn.Int(0);
      SetClaimed(batch, sweep_id, ordinal, ordinal + 1, true);
    }
  }
  ReopenAll(batch, job_id, result.jobs);
  // This also covers a sweep that is active only for analyses.
  Reopen(batch, sweep_id, /*for_analyses=*/false, result.jobs);
  const std::optional<std::int64_t> open = OpenAttemptOf(batch.db, job_id);
  const auto change = Move(batch, job_id, {.event = state::Event::kRetry, .error = "", .now = now});
  if (!change || !change->ready) return;
  if (open) result.jobs.superseded.push_back(*open);
  result.jobs.ready.push_back(*change->ready);
  result.queued += 1;
}

// The sweep for which a job is retried: a live one if possible, otherwise one that claims it,
// otherwise the latest that was not cancelled. 0: none.
std::int64_t SweepToServe(Database& db, std::int64_t job_id) {
  Query row = db.Run(
      "SELECT s.sweep_id FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) "
      "WHERE c.job_id = ? AND s.state <> 'cancelled' "
      "ORDER BY s.state IN ('expanding', 'active') DESC, c.claimed DESC, s.sweep_id DESC LIMIT 1",
      job_id);
  return row.Step() ? row.Int(0) : 0;
}

// Another sweep with this name; 0: none.
std::int64_t OtherWithName(Database& db, std::int64_t sweep_id, const std::string& name) {
  Query other = db.Run(
      "SELECT sweep_id FROM sweeps WHERE name = ? AND sweep_id <> ? AND deleted = 0 "
      "ORDER BY sweep_id DESC LIMIT 1",
      name, sweep_id);
  return other.Step() ? other.Int(0) : 0;
}

}  // namespace

WriteResult Do(Batch& batch, const LabelSweep& write) {
  std::string name;
  std::string note;
  {
    Query row = batch.db.Run("SELECT name, note FROM sweeps WHERE sweep_id = ? AND deleted = 0",
                             write.sweep_id);
    if (!row.Step()) return SweepLabeled{};
    name = row.Text(0);
    note = row.Text(1);
  }
  SweepLabeled result{.found = true};
  if (write.name && *write.name != name) {
    result.has_name = OtherWithName(batch.db, write.sweep_id, *write.name);
    if (result.has_name != 0) return result;
  }
  result.changed = write.name.value_or(name) != name || write.note.value_or(note) != note;
  if (result.changed) {
    batch.db.Execute("UPDATE sweeps SET name = ?, note = ? WHERE sweep_id = ?",
                     write.name.value_or(name), write.note.value_or(note), write.sweep_id);
  }
  return result;
}

WriteResult Do(Batch& batch, const ControlSweep& write) {
  const std::optional<SweepRow> before = LoadSweep(batch.db, write.sweep_id);
  if (!before) return SweepControlled{};
  SweepRow sweep = *before;
  if (write.paused && sweep.live()) sweep.paused = *write.paused;
  if (write.priority) sweep.priority = *write.priority;
  const SweepSettings settings = SettingsOf(write.sweep_id, sweep);
  SweepControlled result{.found = true, .live = sweep.live(), .settings = settings};
  result.changed = settings != SettingsOf(write.sweep_id, *before);
  if (result.changed) {
    batch.db.Execute("UPDATE sweeps SET paused = ?, priority = ? WHERE sweep_id = ?", sweep.paused,
                     sweep.priority, write.sweep_id);
  }
  return result;
}

WriteResult Do(Batch& batch, const RetrySlice& write) {
  Retried result;
  const std::optional<SweepRow> sweep = LoadSweep(batch.db, write.sweep_id);
  if (!sweep) {
    result.refused = absl::StrCat("no sweep ", write.sweep_id, " is stored");
    return result;
  }
  if (sweep->state == "cancelled") {
    result.refused = absl::StrCat(
        "sweep ", write.sweep_id,
        " is cancelled and claims no jobs; submit its document again: what is stored is not "
        "trained again, and `retry` then queues what failed");
    return result;
  }
  const auto jobs = JobsOfSweep(batch.db, write.sweep_id, write.from, kScannedJobs);
  if (static_cast<int>(jobs.size()) == kScannedJobs) result.next = jobs.back().ordinal + 1;
  for (const SweepJob& job : jobs) {
    if (job.state != JobState::kFailed) {
      result.nothing += 1;
      continue;
    }
    if (result.queued == kChangedJobs) {
      result.next = job.ordinal;
      break;
    }
    TryAgain(batch, write.sweep_id, job.job_id, write.now, result);
  }
  result.jobs.applied = true;
  return result;
}

WriteResult Do(Batch& batch, const RetryJob& write) {
  Retried result;
  JobState state = JobState::kQueued;
  {
    Query job = batch.db.Run("SELECT state FROM jobs WHERE job_id = ?", write.job_id);
    if (!job.Step()) {
      result.refused = absl::StrCat("no job ", write.job_id, " is stored");
      return result;
    }
    state = *state::ParseJobState(job.Text(0));
  }
  const bool wanted =
      state == JobState::kFailed || (state == JobState::kCancelled && !write.failed_only);
  if (!wanted) {
    result.nothing = 1;
    return result;
  }
  const std::int64_t sweep_id = SweepToServe(batch.db, write.job_id);
  if (sweep_id == 0) {
    result.refused = absl::StrCat("job ", write.job_id, " is ", std::string(state::Name(state)),
                                  ", and every sweep that has it is cancelled; submit one of them "
                                  "again: what is stored is not trained again");
    return result;
  }
  TryAgain(batch, sweep_id, write.job_id, write.now, result);
  result.jobs.applied = true;
  return result;
}

WriteResult Do(Batch& batch, const ExtendSweep& write) {
  const std::optional<SweepRow> sweep = LoadSweep(batch.db, write.sweep_id);
  if (!sweep || sweep->state == "cancelled") return SweepExtended{};
  if (write.max_queued != 0 && write.cells > sweep->cells) {
    const std::int64_t queued = QueuedOf(batch, sweep->owner);
    const auto more = static_cast<std::int64_t>(write.cells - sweep->cells);
    if (queued + more > write.max_queued) return SweepExtended{.full = true, .queued = queued};
  }
  const int applied = batch.db.Execute(
      "UPDATE sweeps SET extensions_json = json_insert(extensions_json, '$[#]', ?), cells = ?, "
      "state = 'expanding', reopened = 0, drop_from = NULL "
      "WHERE sweep_id = ? AND json_array_length(extensions_json) = ?",
      write.seeds, write.cells, write.sweep_id, static_cast<std::int64_t>(write.known));
  if (applied == 0) return SweepExtended{};
  SweepExtended result{.applied = true, .expanded = sweep->expanded};
  if (!sweep->live()) {
    CountOpenJobs(batch, write.sweep_id);
    AddWaiting(batch, write.sweep_id, result.jobs);
    AddSettings(batch.db, write.sweep_id, result.jobs);
  }
  return result;
}

}  // namespace pelab::store
