// Importing jobs and sweeps from another database.
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/experiment/configuration.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"
#include "server/store/divergence.h"
#include "server/store/shares.h"
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

std::string WrongWithEpoch(const Epoch& epoch, int due) {
  if (epoch.epoch != due) {
    return absl::StrCat("epoch ", epoch.epoch, " comes where epoch ", due, " is due");
  }
  const bool finite = std::isfinite(epoch.train_loss) && std::isfinite(epoch.test_loss) &&
                      std::isfinite(epoch.learning_rate) && std::isfinite(epoch.seconds);
  if (finite && IsScore(epoch.train_correct, epoch.train_total) &&
      IsScore(epoch.test_correct, epoch.test_total)) {
    return "";
  }
  return absl::StrCat("the numbers of epoch ", epoch.epoch,
                      " cannot be: all must be finite, and correct at most total");
}

// Checks an imported job. Empty, or an inconsistency that no intact database contains.
class Judge {
 public:
  Judge(const Batch& batch, const ImportJob& write) : batch_(batch), write_(write) {}

  std::string WhatIsWrong() const {
    if (std::string wrong = Line(); !wrong.empty()) return wrong;
    if (std::string wrong = Attempts(); !wrong.empty()) return wrong;
    if (std::string wrong = Analyses(); !wrong.empty()) return wrong;
    return Files();
  }

 private:
  std::string Line() const {
    if (write_.epochs.size() != static_cast<std::size_t>(write_.cell.epochs)) {
      return absl::StrCat("it has ", write_.epochs.size(), " of ", write_.cell.epochs, " epochs");
    }
    for (std::size_t i = 0; i < write_.epochs.size(); ++i) {
      std::string wrong = WrongWithEpoch(write_.epochs[i], static_cast<int>(i));
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  std::string Attempts() const {
    int succeeded = 0;
    int trained = 0;
    bool from_start = write_.cell.epochs == 0;
    std::set<std::string> workers;
    for (const ImportedWorker& worker : write_.workers) workers.insert(worker.worker_id);
    for (const ImportedAttempt& attempt : write_.attempts) {
      if (workers.count(attempt.worker_id) == 0) return "an attempt's worker is not named";
      const int start = attempt.start_epoch.value_or(write_.cell.epochs);
      if (start < 0 || start > write_.cell.epochs) {
        return absl::StrCat("an attempt starts at epoch ", start, " of ", write_.cell.epochs);
      }
      from_start |= start == 0;
      const bool ended_well = attempt.outcome == state::Outcome::kSucceeded;
      succeeded += ended_well ? 1 : 0;
      trained += ended_well && attempt.start_epoch && start < write_.cell.epochs ? 1 : 0;
    }
    if (!from_start) return "no attempt starts at epoch 0";
    if (succeeded == 0) return "no attempt of it succeeded";
    if (trained > 1) return absl::StrCat(trained, " attempts trained it");
    return "";
  }

  bool IsAttempt(int number) const {
    return number >= 1 && static_cast<std::size_t>(number) <= write_.attempts.size();
  }

  std::string Analyses() const {
    for (const ImportedAnalysis& analysis : write_.analyses) {
      if (!IsAttempt(analysis.attempt)) {
        return absl::StrCat("an analysis is of attempt ", analysis.attempt, " of ",
                            write_.attempts.size());
      }
      std::string wrong =
          std::visit([](const auto& body) { return store::WhatIsWrong(body); }, analysis.body);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  std::string Files() const {
    const auto& has = batch_.options.has_artifact;
    for (const ImportedFile& file : write_.files) {
      if (!IsAttempt(file.attempt)) {
        return absl::StrCat("a file is of attempt ", file.attempt, " of ", write_.attempts.size());
      }
      if (has && !has(file.artifact.sha256)) {
        return absl::StrCat("its file ", file.artifact.name, " has not come");
      }
    }
    return "";
  }

  const Batch& batch_;
  const ImportJob& write_;
};

class Importer {
 public:
  Importer(Batch& batch, const ImportJob& write) : batch_(batch), write_(write) {}

  JobImported Store(int generation) {
    InsertJob(generation);
    for (const ImportedWorker& worker : write_.workers) InsertWorker(worker);
    for (const ImportedAttempt& attempt : write_.attempts) InsertAttempt(attempt);
    for (const Epoch& epoch : write_.epochs) InsertEpoch(epoch);
    for (const ImportedAnalysis& analysis : write_.analyses) {
      const AttemptRow attempt{.attempt_id = attempts_[analysis.attempt - 1], .job_id = job_id_};
      if (const auto* matrix = std::get_if<HeadAblation>(&analysis.body)) {
        StoreMatrix(batch_, attempt, *matrix, analysis.created_at);
      } else {
        StoreResult(batch_, attempt, std::get<AnalysisResult>(analysis.body), analysis.created_at);
      }
    }
    for (const ImportedFile& file : write_.files) {
      batch_.db.Execute(
          "INSERT INTO artifacts (attempt_id, name, sha256, bytes) VALUES (?, ?, ?, ?)",
          attempts_[file.attempt - 1], file.artifact.name, file.artifact.sha256,
          file.artifact.bytes);
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
    const Epoch* best = nullptr;
    for (const Epoch& epoch : write_.epochs) {
      if (best == nullptr || Accuracy(epoch) > Accuracy(*best)) best = &epoch;
    }
    std::optional<std::int64_t> train_correct, train_total, test_correct, test_total, best_correct,
        best_total;
    std::optional<double> train_loss, test_loss;
    if (best != nullptr) {
      const Epoch& last = write_.epochs.back();
      train_loss = last.train_loss;
      test_loss = last.test_loss;
      train_correct = last.train_correct;
      train_total = last.train_total;
      test_correct = last.test_correct;
      test_total = last.test_total;
      best_correct = best->test_correct;
      best_total = best->test_total;
    }
    batch_.db.Execute(
        "INSERT INTO jobs (key, generation, pe, pe_version, pe_label, task, task_version, "
        "protocol, seed, configuration_id, device_kind, memory_bytes, state, trained, epochs, "
        "epochs_done, attempts, train_correct, train_total, test_correct, test_total, "
        "best_test_correct, best_test_total, train_loss, test_loss, wall_seconds, device, "
        "execution_json, created_at, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "'succeeded', 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        cell.key, generation, cell.requirement.pe, cell.requirement.pe_version, cell.pe_label,
        cell.requirement.task, cell.requirement.task_version, cell.protocol_label, cell.seed,
        ConfigurationWith(batch_.db, experiment::TemplateOf(cell.spec_json, cell.seed)),
        cell.requirement.device_kind, cell.requirement.memory_bytes, cell.epochs,
        static_cast<int>(write_.epochs.size()), static_cast<int>(write_.attempts.size()),
        train_correct, train_total, test_correct, test_total, best_correct, best_total, train_loss,
        test_loss, write_.wall_seconds, write_.device, write_.execution_json, write_.created_at,
        write_.ended_at);
    job_id_ = batch_.db.LastId();
    JudgeDivergence(batch_.db, job_id_);
  }

  static double Accuracy(const Epoch& epoch) {
    return static_cast<double>(epoch.test_correct) / static_cast<double>(epoch.test_total);
  }

  void InsertWorker(const ImportedWorker& worker) {
    batch_.db.Execute(
        "INSERT OR IGNORE INTO workers (worker_id, host, version, slots_json, slots, "
        "capabilities_json, state, last_seen_at) VALUES (?, ?, ?, ?, ?, '', 'offline', ?)",
        worker.worker_id, worker.host, worker.version, worker.slots_json, worker.slots,
        worker.last_seen_at);
  }

  void InsertAttempt(const ImportedAttempt& attempt) {
    batch_.db.Execute(
        "INSERT INTO attempts (job_id, number, token, worker_id, slot, device, analyses_json, "
        "start_epoch, environment_json, outcome, error_kind, error, started_at, ended_at) "
        "VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        job_id_, static_cast<int>(attempts_.size()) + 1, attempt.worker_id, attempt.slot,
        attempt.device, attempt.analyses_json, attempt.start_epoch, attempt.environment_json,
        state::Name(attempt.outcome), attempt.error_kind, attempt.error, attempt.started_at,
        attempt.ended_at);
    attempts_.push_back(batch_.db.LastId());
  }

  // Adds the epoch to its attempt by the rule for accepted epochs: the last attempt that started at
  // or before it. There is always one, because one attempt starts at epoch 0.
  void InsertEpoch(const Epoch& epoch) {
    std::size_t of = write_.attempts.size() - 1;
    while (write_.attempts[of].start_epoch.value_or(write_.cell.epochs) > epoch.epoch) --of;
    batch_.db.Execute(
        "INSERT INTO curves (attempt_id, epoch, train_loss, train_correct, train_total, "
        "test_loss, test_correct, test_total, learning_rate, seconds) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        attempts_[of], epoch.epoch, epoch.train_loss, epoch.train_correct, epoch.train_total,
        epoch.test_loss, epoch.test_correct, epoch.test_total, epoch.learning_rate, epoch.seconds);
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
      "expanded_cells, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 'cancelled', ?, ?, ?)",
      write.name, write.protocol, write.document, write.file_name, write.overrides_json,
      write.token, write.analyses_json, write.resources_json, write.extensions_json, write.priority,
      write.cells, write.cells, write.created_at);
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

WriteResult Do(Batch& batch, const ImportSweep& write) {
  SweepImported result;
  std::string state;
  {
    Query row =
        batch.db.Run("SELECT sweep_id, state FROM sweeps WHERE client_token = ?", write.token);
    if (row.Step()) {
      result.sweep_id = row.Int(0);
      state = row.Text(1);
    }
  }
  result.settled = result.sweep_id != 0 && state != "cancelled";
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
