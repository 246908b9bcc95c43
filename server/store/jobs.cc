// Jobs: their transitions, and the data about them for the scheduler and the workers.
#include <cstdint>

#include "core/base/json_text.h"
#include "core/base/utf8.h"
#include "core/event/check.h"
#include "core/experiment/configuration.h"
#include "server/limits.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"

namespace pelab::store {
namespace {

using state::JobState;
using state::Outcome;

// Changes the number of open jobs of every sweep with a live claim on the job.
void CountForClaims(Batch& batch, std::int64_t job_id, int delta) {
  Query claims = batch.db.Run(
      "SELECT c.sweep_id FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) "
      "WHERE c.job_id = ? AND c.claimed = 1 AND s.state IN ('expanding', 'active')",
      job_id);
  while (claims.Step()) batch.open_delta[claims.Int(0)] += delta;
}

void EndAttemptRow(Batch& batch, std::int64_t attempt_id, state::Outcome outcome,
                   const JobEvent& job_event) {
  std::optional<std::string> kind;
  std::optional<std::string> error;
  if (job_event.error_kind != state::ErrorKind::kNone) {
    kind = std::string(state::Name(job_event.error_kind));
  }
  if (!job_event.error.empty()) error = job_event.error;
  if (AttemptRow* row = batch.attempts.Use(attempt_id)) {
    batch.Flush(*row);
    batch.attempts.Forget(attempt_id);
  }
  batch.db.Execute(
      "UPDATE attempts SET outcome = ?, error_kind = ?, error = ?, ended_at = ?, "
      "energy_joules = ? WHERE attempt_id = ?",
      state::Name(outcome), kind, error, job_event.now, job_event.energy_joules, attempt_id);
}

// The error that lists show: that of the last attempt that went wrong, until an attempt succeeds.
std::optional<std::string> ErrorOfJob(const state::Transition& next, const JobEvent& job_event,
                                      std::optional<std::string> before) {
  if (next.to == JobState::kSucceeded || job_event.event == state::Event::kRetry) return {};
  if (!job_event.error.empty()) return job_event.error;
  if (next.to == JobState::kFailed && !before)
    return "its attempts were lost or preempted too often";
  return before;
}

// Whether the open attempt waited in a trainer that ran other jobs first. If so, it has not
// started, but an attempt that was sent to the same slot at the same time has.
bool WaitedForOthers(Batch& batch, std::int64_t job_id) {
  constexpr std::int64_t kMostTogether = 64;
  const std::optional<std::int64_t> attempt_id = OpenAttemptOf(batch.db, job_id);
  if (!attempt_id) return false;
  const std::int64_t from = *attempt_id - kMostTogether;
  const std::int64_t to = *attempt_id + kMostTogether;
  batch.FlushAll();
  return batch.db
      .Run(
          "SELECT 1 FROM attempts AS a JOIN attempts AS o ON o.attempt_id BETWEEN ?2 AND ?3 "
          "AND o.worker_id = a.worker_id AND o.slot = a.slot AND o.started_at = a.started_at "
          "WHERE a.attempt_id = ?1 AND a.start_epoch IS NULL AND o.start_epoch IS NOT NULL",
          *attempt_id, from, to)
      .Step();
}

// How far the job's open attempt has advanced it.
state::Progress ProgressOf(Batch& batch, std::int64_t job_id, const JobEvent& job_event) {
  const std::optional<std::int64_t> attempt_id = OpenAttemptOf(batch.db, job_id);
  if (!attempt_id) return state::Progress::kNone;
  // After this no epoch is staged, so the query finds all of them in `curves`.
  batch.staging.MoveJob(job_id);
  Query row = batch.db.Run(
      "SELECT (SELECT max(epoch) FROM curves WHERE attempt_id = ?1), "
      "(SELECT max((SELECT max(epoch) FROM curves AS c WHERE c.attempt_id = a.attempt_id)) "
      "FROM attempts AS a WHERE a.job_id = ?2 AND a.attempt_id <> ?1), "
      "EXISTS (SELECT 1 FROM analyses WHERE job_id = ?2 AND attempt_id = ?1)",
      *attempt_id, job_id);
  row.Step();
  const bool analyzed = row.Int(2) != 0;
  const bool further = !row.IsNull(0) && (row.IsNull(1) || row.Int(0) > row.Int(1));
  if (analyzed || further) return state::Progress::kAdvanced;
  if (!row.IsNull(0)) return state::Progress::kRepeated;
  if (job_event.event == state::Event::kPreempt &&
      (job_event.never_started || WaitedForOthers(batch, job_id))) {
    return state::Progress::kWaited;
  }
  return state::Progress::kNone;
}

// A job's state before an event.
struct JobBefore {
  JobState state = JobState::kQueued;
  state::Facts facts;
  std::optional<std::string> error;
};

std::optional<JobBefore> Load(Batch& batch, std::int64_t job_id, const JobEvent& job_event) {
  Query job = batch.db.Run(
      "SELECT state, lost_attempts, failed_attempts, error, trained FROM jobs WHERE job_id = ?",
      job_id);
  if (!job.Step()) return std::nullopt;
  JobBefore before{.state = *state::ParseJobState(job.Text(0)),
                   .facts = {.error = job_event.error_kind,
                             .trained = job.Int(4) != 0,
                             .lost_attempts = static_cast<int>(job.Int(1)),
                             .failed_attempts = static_cast<int>(job.Int(2)),
                             .budgets = batch.options.budgets},
                   .error = std::nullopt};
  if (!job.IsNull(3)) before.error = job.Text(3);
  if (job_event.event == state::Event::kPreempt || job_event.event == state::Event::kLose ||
      job_event.event == state::Event::kStopped) {
    before.facts.progress = ProgressOf(batch, job_id, job_event);
  }
  return before;
}

void StoreJob(Database& db, std::int64_t job_id, const state::Transition& next,
              const JobEvent& job_event, std::optional<std::string> error_before) {
  std::int64_t not_before = 0;
  if (next.back_off) {
    not_before = job_event.now + state::BackOffMilliseconds(next.failed_attempts, job_event.jitter);
  }
  std::optional<std::int64_t> ended;
  if (state::IsTerminal(next.to)) ended = job_event.now;
  db.Execute(
      "UPDATE jobs SET state = ?, lost_attempts = ?, failed_attempts = ?, not_before = ?, "
      "error = ?, ended_at = ?, trained = trained OR ?, attempts = attempts + ? WHERE job_id = ?",
      state::Name(next.to), next.lost_attempts, next.failed_attempts, not_before,
      ErrorOfJob(next, job_event, std::move(error_before)), ended, next.to == JobState::kSucceeded,
      job_event.event == state::Event::kAssign, job_id);
}

// After a job has ended, its requests for analyses are dropped. But if it succeeded and further
// analyses were requested meanwhile, it is queued for them at once.
std::optional<JobChange> GoOn(Batch& batch, std::int64_t job_id, bool succeeded,
                              const JobEvent& job_event) {
  if (succeeded && !NeededAnalyses(batch.db, job_id).empty() && FindWeights(batch, job_id)) {
    return Move(batch, job_id,
                {.event = state::Event::kAnalyze, .error = "", .now = job_event.now});
  }
  batch.db.Execute("DELETE FROM analysis_requests WHERE job_id = ?", job_id);
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> OpenAttemptOf(Database& db, std::int64_t job_id) {
  Query open =
      db.Run("SELECT attempt_id FROM attempts WHERE job_id = ? AND outcome IS NULL", job_id);
  if (!open.Step()) return std::nullopt;
  return open.Int(0);
}

JobState WithoutClaim(JobState state, bool trained) {
  if (state::IsTerminal(state)) return state;
  return trained ? JobState::kSucceeded : JobState::kCancelled;
}

void Batch::CountMove(std::int64_t job_id, JobState from, JobState to, bool trained) {
  if (from == to) return;
  const bool now_trained = trained || to == JobState::kSucceeded;
  Query sweeps = db.Run(
      "SELECT c.sweep_id, c.claimed, j.epochs - coalesce(c.withdrawn_epochs, 0) "
      "FROM sweep_jobs AS c JOIN jobs AS j USING (job_id) WHERE c.job_id = ?",
      job_id);
  while (sweeps.Step()) {
    CountDelta& delta = counts[sweeps.Int(0)];
    const bool claimed = sweeps.Int(1) != 0;
    const JobState before = claimed ? from : WithoutClaim(from, trained);
    const JobState after = claimed ? to : WithoutClaim(to, now_trained);
    delta.jobs[static_cast<std::size_t>(before)] -= 1;
    delta.jobs[static_cast<std::size_t>(after)] += 1;
    if (!claimed && now_trained && !trained) delta.epochs_done += sweeps.Int(2);
  }
}

void Batch::CountEpochs(AttemptRow& row, std::int64_t more) {
  if (more == 0) return;
  if (!row.sweeps) {
    row.sweeps.emplace();
    Query sweeps =
        db.Run("SELECT sweep_id FROM sweep_jobs WHERE job_id = ? AND claimed = 1", row.job_id);
    while (sweeps.Step()) row.sweeps->push_back(sweeps.Int(0));
  }
  for (const std::int64_t sweep_id : *row.sweeps) counts[sweep_id].epochs_done += more;
}

void Batch::StoreCounts() {
  for (const auto& [sweep_id, open] : open_delta) counts[sweep_id];
  for (const std::int64_t sweep_id : uncounted) counts[sweep_id];
  for (const auto& [sweep_id, delta] : counts) {
    if (gone.count(sweep_id) != 0) continue;
    const auto before = open_before.find(sweep_id);
    const auto more = open_delta.find(sweep_id);
    std::int64_t open = more == open_delta.end() ? 0 : more->second;
    if (before != open_before.end() && uncounted.count(sweep_id) == 0) open += before->second;
    db.Execute(
        "INSERT INTO sweep_counts (sweep_id, queued, assigned, running, succeeded, failed, "
        "cancelled, epochs, epochs_done, open_claims) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (sweep_id) DO UPDATE SET queued = queued + excluded.queued, "
        "assigned = assigned + excluded.assigned, running = running + excluded.running, "
        "succeeded = succeeded + excluded.succeeded, failed = failed + excluded.failed, "
        "cancelled = cancelled + excluded.cancelled, epochs = epochs + excluded.epochs, "
        "epochs_done = epochs_done + excluded.epochs_done, open_claims = excluded.open_claims",
        sweep_id, delta.jobs[0], delta.jobs[1], delta.jobs[2], delta.jobs[3], delta.jobs[4],
        delta.jobs[5], delta.epochs, delta.epochs_done, open);
  }
}

std::optional<JobChange> Move(Batch& batch, std::int64_t job_id, const JobEvent& given) {
  std::optional<JobBefore> before = Load(batch, job_id, given);
  if (!before) return std::nullopt;
  const std::optional<state::Transition> next =
      state::Next(before->state, given.event, before->facts);
  if (!next) return std::nullopt;

  JobEvent job_event = given;
  job_event.error = Shorten(given.error, limits::kErrorBytes);
  if (job_event.event == state::Event::kPreempt && next->attempt_outcome == Outcome::kFailed) {
    job_event.error += "; it had stored no new epoch";
  }
  JobChange change{
      .job_id = job_id, .state = next->to, .error = job_event.error_kind, .now = job_event.now};
  if (next->attempt_outcome) {
    change.outcome = *next->attempt_outcome;
    const auto attempt = job_event.attempt_id != 0 ? std::optional(job_event.attempt_id)
                                                   : OpenAttemptOf(batch.db, job_id);
    if (attempt) {
      EndAttemptRow(batch, *attempt, *next->attempt_outcome, job_event);
      change.gpu_seconds = ChargeAttempt(batch, *attempt, job_event.now);
    }
  }
  StoreJob(batch.db, job_id, *next, job_event, std::move(before->error));
  batch.CountMove(job_id, before->state, next->to, before->facts.trained);
  const bool was_open = !state::IsTerminal(before->state);
  const bool is_open = !state::IsTerminal(next->to);
  if (was_open != is_open) CountForClaims(batch, job_id, is_open ? 1 : -1);
  if (was_open && !is_open) {
    DropCheckpoint(batch, job_id);
    const bool succeeded = job_event.event == state::Event::kSucceed;
    if (const auto again = GoOn(batch, job_id, succeeded, job_event)) {
      change.state = again->state;
      change.ready = again->ready;
    }
  }
  if (next->to == JobState::kQueued) change.ready = LoadReady(batch.db, job_id);
  return change;
}

std::shared_ptr<const JobChange> SharedMove(Batch& batch, std::int64_t job_id,
                                            const JobEvent& given) {
  std::optional<JobChange> change = Move(batch, job_id, given);
  return change ? std::make_shared<const JobChange>(*std::move(change)) : nullptr;
}

// The configuration is 0 if the job must run alone. A job that is trained or that began alone would
// not get faster by packing. A job that has failed before, or was lost more than twice, may have
// made its trainer end, and must not endanger other jobs.
const char kReadyColumns[] =
    "j.job_id, coalesce(c.sweep_id, 0), coalesce(c.ordinal, 0), j.not_before, j.pe, "
    "j.pe_version, j.task, j.task_version, j.device_kind, j.memory_bytes, "
    "CASE WHEN j.trained OR j.failed_attempts > 0 OR j.lost_attempts > 2 OR "
    "iif(json_valid(j.execution_json), j.execution_json ->> '$.packing' = 1, 0) THEN 0 ELSE "
    "coalesce(j.configuration_id, 0) END, "
    "coalesce(j.execution_json, ''), j.attempts";

ReadyJob ReadReady(const Query& query) {
  return {.job_id = query.Int(0),
          .sweep_id = query.Int(1),
          .ordinal = query.Int(2),
          .others = {},
          .not_before = query.Int(3),
          .requirement = {.pe = query.Text(4),
                          .pe_version = static_cast<int>(query.Int(5)),
                          .task = query.Text(6),
                          .task_version = static_cast<int>(query.Int(7)),
                          .device_kind = query.Text(8),
                          .memory_bytes = static_cast<std::uint64_t>(query.Int(9))},
          .configuration_id = query.Int(10),
          .execution = query.Text(11)};
}

std::vector<Claim> OtherClaims(Database& db, const ReadyJob& job) {
  std::vector<Claim> claims;
  Query rows = db.Run(
      "SELECT c.sweep_id, c.ordinal FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) "
      "WHERE c.job_id = ? AND c.claimed = 1 AND s.state IN ('expanding', 'active') "
      "AND c.sweep_id <> ? ORDER BY c.sweep_id",
      job.job_id, job.sweep_id);
  while (rows.Step()) claims.push_back({rows.Int(0), rows.Int(1)});
  return claims;
}

ReadyJob LoadReady(Database& db, std::int64_t job_id) {
  static const std::string sql =
      std::string("SELECT ") + kReadyColumns +
      " FROM jobs AS j LEFT JOIN (SELECT c.job_id, c.sweep_id, c.ordinal FROM sweep_jobs AS c "
      "JOIN sweeps AS s USING (sweep_id) WHERE c.job_id = ?1 AND c.claimed = 1 "
      "AND s.state IN ('expanding', 'active') ORDER BY c.sweep_id, c.ordinal LIMIT 1) AS c "
      "USING (job_id) WHERE j.job_id = ?1";
  Query row = db.Run(sql.c_str(), job_id);
  if (!row.Step()) return {};
  ReadyJob job = ReadReady(row);
  job.others = OtherClaims(db, job);
  job.requirement.analyses = VersionsOf(NeededAnalyses(db, job_id));
  return job;
}

const event::JobFacts* Batch::FactsOf(const AttemptRow& row) {
  constexpr std::size_t kMostKept = 1024;
  auto known = facts.find(row.configuration_id);
  if (known == facts.end()) {
    Query query = db.Run("SELECT template FROM configurations WHERE configuration_id = ?",
                         row.configuration_id);
    const std::string spec_template = query.Step() ? query.Text(0) : "";
    if (facts.size() >= kMostKept) facts.clear();
    known = facts
                .emplace(row.configuration_id,
                         event::FactsOf(experiment::FillTemplate(spec_template, 0)))
                .first;
  }
  return known->second ? &*known->second : nullptr;
}

Execution ToExecution(const v1::Execution& execution) {
  return {.threads = execution.threads(),
          .micro_batch = execution.micro_batch(),
          .packing = execution.packing()};
}

std::optional<Execution> ReadExecution(const Query& query, int column) {
  if (query.IsNull(column)) return std::nullopt;
  const std::optional<v1::Execution> read = event::ExecutionFromJson(query.Text(column));
  if (!read || !event::WhatIsWrong(*read).empty()) return std::nullopt;
  return ToExecution(*read);
}

Assignment LoadAssignment(Database& db, std::int64_t attempt_id) {
  Query row = db.Run(
      "SELECT a.token, j.job_id, j.key, a.slot, j.pe, j.pe_label, j.task, j.seed, s.template, "
      "a.analyses_json, j.epochs_done, j.trained, j.execution_json, "
      "c.epoch, c.sha256, c.bytes, a.trace_id, a.span_id, a.started_at, "
      "a.parent_span_id, a.principal FROM attempts AS a JOIN jobs AS j USING (job_id) "
      "JOIN configurations AS s USING (configuration_id) "
      "LEFT JOIN checkpoints AS c ON c.job_id = j.job_id AND "
      "c.epoch <= j.epochs_done "
      "WHERE a.attempt_id = ?",
      attempt_id);
  if (!row.Step()) return {};
  Assignment assignment{.attempt_id = attempt_id,
                        .token = static_cast<std::uint64_t>(row.Int(0)),
                        .job_id = row.Int(1),
                        .key = row.Text(2),
                        .slot = static_cast<int>(row.Int(3)),
                        .pe = row.Text(4),
                        .pe_label = row.Text(5),
                        .task = row.Text(6),
                        .seed = row.Int(7),
                        .spec_json = experiment::FillTemplate(row.Text(8), row.Int(7)),
                        .analyses = AnalysesFromJson(row.Text(9)),
                        .max_start_epoch = static_cast<int>(row.Int(10))};
  assignment.execution = ReadExecution(row, 12);
  assignment.trace = {row.Text(16), row.Text(17)};
  assignment.started_at = row.Int(18);
  assignment.parent_span = row.Text(19);
  assignment.principal = row.Text(20);
  assignment.files = NeededFiles(db, assignment);
  // If the weights have disappeared meanwhile, the worker finds no file of that hash and reports
  // that.
  if (row.Int(11) != 0) {
    assignment.weights = StoredWeights(db, assignment.job_id).value_or(KeptWeights{});
  } else if (!row.IsNull(13)) {
    assignment.checkpoint = Checkpoint{static_cast<int>(row.Int(13)), row.Text(14),
                                       static_cast<std::uint64_t>(row.Int(15))};
  }
  return assignment;
}

}  // namespace pelab::store
