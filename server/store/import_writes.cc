// Importing jobs and sweeps from another database.
#include <cstdint>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/event/check.h"
#include "core/event/enums.h"
#include "core/event/job_facts.h"
#include "core/experiment/configuration.h"
#include "core/experiment/import_token.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"
#include "server/store/divergence.h"
#include "server/store/sweeps.h"

namespace pelab::store {
namespace {

using state::JobState;

struct Here {
  std::int64_t job_id = 0;
  int generation = 0;
  JobState state = JobState::kQueued;
  bool trained = false;
  std::int64_t epochs = 0;
  std::int64_t epochs_done = 0;
};

// The generation that counts: the latest trained one, otherwise the latest.
std::optional<Here> FindHere(Database& db, const std::string& key) {
  Query row = db.Run(
      "SELECT job_id, generation, state, trained, epochs, epochs_done FROM jobs WHERE key = ? "
      "ORDER BY trained DESC, generation DESC LIMIT 1",
      key);
  if (!row.Step()) return std::nullopt;
  return Here{.job_id = row.Int(0),
              .generation = static_cast<int>(row.Int(1)),
              .state = *state::ParseJobState(row.Text(2)),
              .trained = row.Int(3) != 0,
              .epochs = row.Int(4),
              .epochs_done = row.Int(5)};
}

// The epoch at which an attempt of a job of `epochs` epochs starts.
int StartOf(const v1::ImportedAttempt& attempt, int epochs) {
  return attempt.has_start_epoch() ? attempt.start_epoch() : epochs;
}

// Whether the file is one that the job's spec names, and not one of its attempts.
bool IsOfSpec(const ImportJob& write, const v1::ImportedFile& file) {
  if (file.attempt() != 0) return false;
  const std::vector<std::string> named = FilesOfSpec(write.cell.spec_json);
  return std::find(named.begin(), named.end(), file.sha256()) != named.end();
}

// Checks an imported job. Empty, or an inconsistency that no intact database contains.
class Judge {
 public:
  Judge(const Batch& batch, const ImportJob& write)
      : batch_(batch), write_(write), facts_(event::FactsOf(write.cell.spec_json)) {}

  std::string WhatIsWrong() const {
    if (std::string wrong = Curve(); !wrong.empty()) return wrong;
    if (std::string wrong = Attempts(); !wrong.empty()) return wrong;
    if (std::string wrong = Analyses(); !wrong.empty()) return wrong;
    return Files();
  }

 private:
  std::string Curve() const {
    if (write_.epochs.size() != static_cast<std::size_t>(write_.cell.epochs)) {
      return absl::StrCat("it has ", write_.epochs.size(), " of ", write_.cell.epochs, " epochs");
    }
    int due = 0;
    for (const v1::Epoch& epoch : write_.epochs) {
      if (epoch.epoch() != due) {
        return absl::StrCat("epoch ", epoch.epoch(), " comes where epoch ", due, " is due");
      }
      std::string wrong = event::WhatIsWrong(epoch);
      if (wrong.empty() && facts_) wrong = event::WhatIsWrong(epoch, *facts_);
      if (!wrong.empty()) return wrong;
      ++due;
    }
    return "";
  }

  std::string Attempts() const {
    int succeeded = 0;
    int trained = 0;
    bool from_start = write_.cell.epochs == 0;
    std::set<std::string> workers;
    for (const v1::ImportedWorker& worker : write_.job.workers()) {
      if (worker.worker_id().empty() || !IsJson(worker.slots_json())) {
        return "it has a worker without an id, or with slots that are not JSON";
      }
      workers.insert(worker.worker_id());
    }
    for (const v1::ImportedAttempt& attempt : write_.job.attempts()) {
      if (!event::OutcomeOf(attempt.outcome())) return "it has an attempt that has not ended";
      if (!IsJson(attempt.analyses_json()) ||
          (attempt.has_environment_json() && !IsJsonObject(attempt.environment_json()))) {
        return "it has an attempt with analyses or an environment that are not JSON";
      }
      if (workers.count(attempt.worker_id()) == 0) return "an attempt's worker is not named";
      const int start = StartOf(attempt, write_.cell.epochs);
      if (start < 0 || start > write_.cell.epochs) {
        return absl::StrCat("an attempt starts at epoch ", start, " of ", write_.cell.epochs);
      }
      from_start |= start == 0;
      const bool ended_well = attempt.outcome() == v1::ATTEMPT_OUTCOME_SUCCEEDED;
      succeeded += ended_well ? 1 : 0;
      trained += ended_well && start < write_.cell.epochs ? 1 : 0;
    }
    if (!from_start) return "no attempt starts at epoch 0";
    if (succeeded == 0) return "no attempt of it succeeded";
    if (trained > 1) return absl::StrCat(trained, " attempts trained it");
    return "";
  }

  bool IsAttempt(int number) const { return number >= 1 && number <= write_.job.attempts_size(); }

  std::string Analyses() const {
    for (const v1::ImportedAnalysis& analysis : write_.analyses) {
      if (!IsAttempt(analysis.attempt())) {
        return absl::StrCat("an analysis is of attempt ", analysis.attempt(), " of ",
                            write_.job.attempts_size());
      }
      std::string wrong = analysis.has_result() ? event::WhatIsWrong(analysis.result())
                                                : event::WhatIsWrong(analysis.head_ablation());
      if (wrong.empty() && facts_ && !analysis.has_result()) {
        wrong = event::WhatIsWrong(analysis.head_ablation(), *facts_);
      }
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  std::string Files() const {
    for (const v1::ImportedFile& file : write_.files) {
      if (!IsAttempt(file.attempt()) && !IsOfSpec(write_, file)) {
        return absl::StrCat("a file is of attempt ", file.attempt(), " of ",
                            write_.job.attempts_size());
      }
      const std::string wrong = batch_.WhatIsWrongWithFile(file.sha256(), file.bytes());
      if (!wrong.empty()) return absl::StrCat("file ", file.name(), ": ", wrong);
    }
    return "";
  }

  const Batch& batch_;
  const ImportJob& write_;
  const std::optional<event::JobFacts> facts_;
};

class Importer {
 public:
  Importer(Batch& batch, const ImportJob& write) : batch_(batch), write_(write) {}

  JobImported Store(int generation) {
    InsertJob(generation);
    // Workers that no attempt names are left out: nothing of the job needs them.
    std::set<std::string> named;
    for (const v1::ImportedAttempt& attempt : write_.job.attempts()) {
      named.insert(attempt.worker_id());
    }
    for (const v1::ImportedWorker& worker : write_.job.workers()) {
      if (named.count(worker.worker_id()) != 0) InsertWorker(worker);
    }
    for (const v1::ImportedAttempt& attempt : write_.job.attempts()) InsertAttempt(attempt);
    for (const v1::Epoch& epoch : write_.epochs) {
      StoreEpoch(batch_.db, AttemptOf(epoch), epoch);
    }
    for (const v1::ImportedAnalysis& analysis : write_.analyses) {
      const AttemptRow attempt{.attempt_id = attempts_[analysis.attempt() - 1], .job_id = job_id_};
      if (analysis.has_result()) {
        StoreResult(batch_, attempt, analysis.result(), analysis.created_at_ms());
      } else {
        StoreMatrix(batch_, attempt, analysis.head_ablation(), analysis.created_at_ms());
      }
    }
    for (const v1::ImportedFile& file : write_.files) {
      if (IsOfSpec(write_, file)) {
        batch_.db.Execute("INSERT OR IGNORE INTO files (sha256, bytes, stored_at) VALUES (?, ?, ?)",
                          file.sha256(), file.bytes(), write_.job.ended_at_ms());
        continue;
      }
      batch_.db.Execute(
          "INSERT INTO artifacts (attempt_id, name, sha256, bytes) VALUES (?, ?, ?, ?)",
          attempts_[file.attempt() - 1], file.name(), file.sha256(), file.bytes());
    }
    return {.refused = "",
            .verdict = JobImported::kStored,
            .job_id = job_id_,
            .generation = generation};
  }

 private:
  // The summary is computed from the epochs, as Batch::Flush does it.
  void InsertJob(int generation) {
    const NewCell& cell = write_.cell;
    const v1::ImportedJob& job = write_.job;
    const v1::Epoch* best = nullptr;
    for (const v1::Epoch& epoch : write_.epochs) {
      if (best == nullptr || Accuracy(epoch) > Accuracy(*best)) best = &epoch;
    }
    std::optional<std::int64_t> train_correct, train_total, test_correct, test_total, best_correct,
        best_total, train_eval_correct, train_eval_total;
    std::optional<double> train_loss, test_loss;
    if (best != nullptr) {
      const v1::Epoch& last = write_.epochs.back();
      train_loss = last.train_loss();
      test_loss = last.test_loss();
      train_correct = last.train_correct();
      train_total = last.train_total();
      test_correct = last.test_correct();
      test_total = last.test_total();
      if (last.has_train_eval_total()) {
        train_eval_correct = last.train_eval_correct();
        train_eval_total = last.train_eval_total();
      }
      best_correct = best->test_correct();
      best_total = best->test_total();
    }
    batch_.db.Execute(
        "INSERT INTO jobs (key, generation, pe, pe_version, pe_label, task, task_version, "
        "protocol, seed, configuration_id, device_kind, memory_bytes, state, trained, epochs, "
        "epochs_done, attempts, train_correct, train_total, test_correct, test_total, "
        "best_test_correct, best_test_total, train_loss, test_loss, train_eval_correct, "
        "train_eval_total, wall_seconds, device, execution_json, created_at, ended_at) VALUES (?, "
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'succeeded', 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?, ?, ?, ?, ?)",
        cell.key, generation, cell.requirement.pe, cell.requirement.pe_version, cell.pe_label,
        cell.requirement.task, cell.requirement.task_version, cell.protocol_label, cell.seed,
        ConfigurationWith(batch_.db, experiment::TemplateOf(cell.spec_json, cell.seed)),
        cell.requirement.device_kind, cell.requirement.memory_bytes, cell.epochs,
        static_cast<int>(write_.epochs.size()), write_.job.attempts_size(), train_correct,
        train_total, test_correct, test_total, best_correct, best_total, train_loss, test_loss,
        train_eval_correct, train_eval_total, If(job.has_wall_seconds(), job.wall_seconds()),
        If(job.has_device(), job.device()), If(job.has_execution_json(), job.execution_json()),
        job.created_at_ms(), job.ended_at_ms());
    job_id_ = batch_.db.LastId();
    JudgeDivergence(batch_.db, job_id_);
  }

  static double Accuracy(const v1::Epoch& epoch) {
    return static_cast<double>(epoch.test_correct()) / static_cast<double>(epoch.test_total());
  }

  void InsertWorker(const v1::ImportedWorker& worker) {
    batch_.db.Execute(
        "INSERT OR IGNORE INTO workers (worker_id, host, version, slots_json, slots, "
        "capabilities_json, state, last_seen_at) VALUES (?, ?, ?, ?, ?, '', 'offline', ?)",
        worker.worker_id(), worker.host(), worker.version(), worker.slots_json(), worker.slots(),
        worker.last_seen_at_ms());
  }

  void InsertAttempt(const v1::ImportedAttempt& attempt) {
    batch_.db.Execute(
        "INSERT INTO attempts (job_id, number, token, worker_id, slot, device, analyses_json, "
        "start_epoch, environment_json, outcome, error_kind, error, started_at, ended_at, "
        "trace_id, span_id, parent_span_id, energy_joules) "
        "VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        job_id_, static_cast<int>(attempts_.size()) + 1, attempt.worker_id(), attempt.slot(),
        attempt.device(), attempt.analyses_json(),
        If(attempt.has_start_epoch(), attempt.start_epoch()),
        If(attempt.has_environment_json(), attempt.environment_json()),
        state::Name(*event::OutcomeOf(attempt.outcome())),
        If(attempt.has_error_kind(), attempt.error_kind()),
        If(attempt.has_error(), attempt.error()), attempt.started_at_ms(), attempt.ended_at_ms(),
        attempt.trace_id(), attempt.span_id(), attempt.parent_span_id(),
        If(attempt.has_energy_joules(), attempt.energy_joules()));
    attempts_.push_back(batch_.db.LastId());
  }

  // An epoch belongs to the last attempt that started at or before it, by the rule for accepted
  // epochs. There is always one, because one attempt starts at epoch 0.
  std::int64_t AttemptOf(const v1::Epoch& epoch) const {
    int of = write_.job.attempts_size() - 1;
    while (StartOf(write_.job.attempts(of), write_.cell.epochs) > epoch.epoch()) --of;
    return attempts_[of];
  }

  Batch& batch_;
  const ImportJob& write_;
  std::int64_t job_id_ = 0;
  std::vector<std::int64_t> attempts_;  // by number
};

// Counts a stored job for a sweep that is not live and so waits for no job.
void CountJob(Batch& batch, std::int64_t sweep_id, const Here& job) {
  CountDelta& delta = batch.counts[sweep_id];
  delta.jobs[static_cast<std::size_t>(WithoutClaim(job.state, job.trained))] += 1;
  delta.epochs += job.epochs;
  delta.epochs_done += job.epochs_done;
}

std::int64_t InsertSweep(Batch& batch, const ImportSweep& write) {
  batch.db.Execute(
      "INSERT INTO sweeps (name, protocol, document, file_name, overrides_json, client_token, "
      "analyses_json, resources_json, extensions_json, priority, fresh, state, cells, "
      "expanded_cells, created_at, trace_id, span_id) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 'cancelled', ?, ?, ?, ?, ?)",
      write.name, write.protocol, write.document, write.file_name, write.overrides_json,
      write.token, write.analyses_json, write.resources_json, write.extensions_json, write.priority,
      write.cells, write.cells, write.created_at, write.trace.trace_id, write.trace.span_id);
  return batch.db.LastId();
}

}  // namespace

WriteResult Do(Batch& batch, const ImportJob& write) {
  const std::optional<Here> here = FindHere(batch.db, write.cell.key);
  if (here && here->trained) {
    return JobImported{.refused = "",
                       .verdict = JobImported::kPresent,
                       .job_id = here->job_id,
                       .generation = here->generation};
  }
  if (here && !state::IsTerminal(here->state)) {
    return JobImported{.refused = "",
                       .verdict = JobImported::kInFlight,
                       .job_id = here->job_id,
                       .generation = here->generation};
  }
  if (std::string wrong = Judge(batch, write).WhatIsWrong(); !wrong.empty()) {
    return JobImported{.refused = std::move(wrong)};
  }
  return Importer(batch, write).Store(here ? here->generation + 1 : 1);
}

namespace {

struct Submitted {
  std::int64_t sweep_id;
  std::string state;
};

// The sweep, if it was submitted here: a database is imported into itself, or one that got the
// sweep from here is imported back.
std::optional<Submitted> SubmittedHere(Batch& batch, const ImportSweep& write) {
  Query rows = batch.db.Run(
      "SELECT sweep_id, state, client_token FROM sweeps WHERE name = ? AND document = ? AND "
      "deleted = 0",
      write.name, write.document);
  while (rows.Step()) {
    if (experiment::ImportToken(rows.Text(2)) == write.token) return {{rows.Int(0), rows.Text(1)}};
  }
  return std::nullopt;
}

}  // namespace

WriteResult Do(Batch& batch, const ImportSweep& write) {
  SweepImported result;
  std::string state;
  {
    Query row =
        batch.db.Run("SELECT sweep_id, state, document = ? FROM sweeps WHERE client_token = ?",
                     write.document, write.token);
    if (row.Step()) {
      if (row.Int(2) == 0) {
        return SweepImported{.refused = absl::StrCat("its token is that of sweep ", row.Int(0),
                                                     " here, which has another document")};
      }
      result.sweep_id = row.Int(0);
      state = row.Text(1);
    }
  }
  result.settled = result.sweep_id != 0 && state != "cancelled";
  if (result.sweep_id == 0) {
    if (const auto submitted = SubmittedHere(batch, write)) {
      result.sweep_id = submitted->sweep_id;
      state = submitted->state;
      result.settled = true;
    }
  }
  for (const auto& [ordinal, key] : write.jobs) {
    const std::optional<Here> here = FindHere(batch.db, key);
    if (!here || !here->trained) {
      result.missing += 1;
      continue;
    }
    result.jobs += 1;
    if (result.settled) continue;
    if (result.sweep_id == 0) {
      result.sweep_id = InsertSweep(batch, write);
      result.changed = true;
    }
    const int added = batch.db.Execute(
        "INSERT OR IGNORE INTO sweep_jobs (sweep_id, ordinal, job_id, claimed, withdrawn_epochs) "
        "VALUES (?, ?, ?, 0, ?)",
        result.sweep_id, ordinal, here->job_id, here->epochs_done);
    if (added == 0) continue;
    CountJob(batch, result.sweep_id, *here);
    result.changed = true;
  }
  if (write.finish && !result.settled && result.sweep_id != 0) {
    batch.db.Execute(
        "UPDATE sweeps SET state = 'finished', drop_from = NULL, stored_jobs = "
        "(SELECT count(*) FROM sweep_jobs AS c WHERE c.sweep_id = sweeps.sweep_id) "
        "WHERE sweep_id = ?",
        result.sweep_id);
    SetClaimed(batch, result.sweep_id, 0, std::numeric_limits<std::int64_t>::max(), true);
    result.changed = true;
    state = "finished";
  }
  result.finished = state != "cancelled" && !state.empty();
  return result;
}

}  // namespace pelab::store
