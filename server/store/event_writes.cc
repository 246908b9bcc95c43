// The events of an attempt: fencing, sequence numbers, and checks of their content.

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/json_text.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/event/check.h"
#include "core/event/enums.h"
#include "server/limits.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"
#include "server/store/divergence.h"

namespace pelab::store {
namespace {

// An error in an event that a correct trainer never causes, or a loss that is not finite. It ends
// the attempt, because continuing would leave a gap in the curve.
struct Problem {
  std::string message;
  state::ErrorKind kind = state::ErrorKind::kInternal;
};
using Check = std::optional<Problem>;

// Sets the job's summary to the state after the epochs before `start`. An attempt that starts there
// hides the epochs from `start` on of earlier attempts.
void ResetSummary(Batch& batch, std::int64_t job_id, int start) {
  batch.staging.MoveJob(job_id);  // so that no epoch is staged, and the curve is read by its key
  batch.db.Execute(
      "UPDATE jobs SET epochs_done = ?2, "
      "diverged = 0, (train_loss, train_correct, train_total, test_loss, test_correct, "
      "test_total, train_eval_correct, train_eval_total) = (SELECT train_loss, train_correct, "
      "train_total, test_loss, test_correct, test_total, train_eval_correct, train_eval_total "
      "FROM accepted_epochs "
      "WHERE waits = 0 AND job_id = ?1 AND epoch = ?2 - 1), "
      "(best_test_correct, best_test_total) = (SELECT test_correct, test_total "
      "FROM accepted_epochs WHERE waits = 0 AND job_id = ?1 AND epoch < ?2 "
      "ORDER BY CAST(test_correct AS REAL) / test_total DESC, epoch LIMIT 1), "
      "wall_seconds = (SELECT sum(seconds) FROM accepted_epochs "
      "WHERE waits = 0 AND job_id = ?1 AND epoch < ?2) "
      "WHERE job_id = ?1",
      job_id, start);
}

// Stores one event of an attempt. The event has the sequence number that is due.
class Handler {
 public:
  Handler(Batch& batch, const AttemptEvent& event, AttemptRow& row, EventStored& result)
      : batch_(batch), event_(event), row_(row), result_(result) {}

  // Checks the event and stores it.
  Check Take(const v1::Event& event) {
    if (event.has_epoch() && !event::HasFiniteLosses(event.epoch())) {
      return Problem{
          absl::StrCat("the loss of epoch ", event.epoch().epoch(), " is not a finite number"),
          state::ErrorKind::kNonFiniteLoss};
    }
    if (const std::string wrong = WhatIsWrong(event); !wrong.empty()) {
      return Problem{absl::StrCat("it sent what cannot be: ", wrong)};
    }
    switch (event.body_case()) {
      case v1::Event::kStarted:
        return Start(event.started());
      case v1::Event::kEpoch:
        return Add(event.epoch());
      case v1::Event::kHeadAblation:
        return Store(event.head_ablation());
      case v1::Event::kAnalysis:
        return Store(event.analysis());
      case v1::Event::kArtifact:
        return Keep(event.artifact());
      case v1::Event::kCheckpoint:
        return Keep(event.checkpoint());
      case v1::Event::kFinished:
        return Finish(event.finished());
      case v1::Event::BODY_NOT_SET:
        break;
    }
    return Problem{"it sent an event without a body"};
  }

 private:
  std::string WhatIsWrong(const v1::Event& event) {
    std::string wrong = event::WhatIsWrong(event);
    if (!wrong.empty() || !(event.has_epoch() || event.has_head_ablation())) return wrong;
    const event::JobFacts* facts = batch_.FactsOf(row_);
    return facts == nullptr ? "" : event::WhatIsWrong(event, *facts);
  }

  Check Start(const v1::Started& started) {
    if (row_.start_epoch) return Problem{"its trainer said hello twice"};
    if (started.epochs() != row_.epochs) {
      return Problem{absl::StrCat("its trainer runs ", started.epochs(), " epochs; the job has ",
                                  row_.epochs)};
    }
    if (started.start_epoch() > row_.epochs_done) {
      return Problem{absl::StrCat("it starts at epoch ", started.start_epoch(), ", but only ",
                                  row_.epochs_done, " epochs of the job are stored")};
    }
    if (row_.trained && started.start_epoch() != row_.epochs) {
      return Problem{absl::StrCat("it starts at epoch ", started.start_epoch(), " of ", row_.epochs,
                                  ", but was asked for analyses only")};
    }
    if (Check problem = Freeze(started); problem) return problem;
    batch_.db.Execute(
        "UPDATE attempts SET start_epoch = ?, environment_json = nullif(?, ''), last_sequence = ? "
        "WHERE attempt_id = ?",
        started.start_epoch(), EnvironmentOf(started), event_.event->sequence(), row_.attempt_id);
    // Analyses leave the summary of the training unchanged. If no epoch is stored, there is nothing
    // to reset.
    if (row_.epochs_done > 0 && !row_.trained) {
      ResetSummary(batch_, row_.job_id, started.start_epoch());
      batch_.CountEpochs(row_, started.start_epoch() - row_.epochs_counted);
      DropCheckpointBeyond(batch_, row_.job_id, started.start_epoch());
    } else {
      row_.start_epoch = started.start_epoch();
    }
    Move(batch_, row_.job_id,
         {.event = state::Event::kStart,
          .error = "",
          .now = event_.now,
          .attempt_id = row_.attempt_id});
    result_.started = true;
    result_.advanced = true;
    result_.better_alone = started.better_alone();
    return std::nullopt;
  }

  // The environment is only for display, so a malformed one does not refuse the attempt.
  static std::string EnvironmentOf(const v1::Started& started) {
    if (IsJsonObject(started.environment_json())) return started.environment_json();
    if (!started.environment_json().empty()) {
      spdlog::warn("an attempt's environment is not kept: it is not a JSON object, or too deep");
    }
    return "";
  }

  Check Add(const v1::Epoch& epoch) {
    if (!row_.start_epoch) return Problem{"an epoch came before its trainer's hello"};
    if (epoch.epoch() != row_.epochs_done || epoch.epoch() >= row_.epochs) {
      return Problem{absl::StrCat("epoch ", epoch.epoch(), " came where epoch ", row_.epochs_done,
                                  " of ", row_.epochs, " was due")};
    }
    batch_.staging.Append(row_.attempt_id, epoch);
    result_.advanced = true;
    result_.epoch_seconds = epoch.seconds();
    row_.epochs_done = epoch.epoch() + 1;
    row_.last = epoch;
    const double accuracy =
        static_cast<double>(epoch.test_correct()) / static_cast<double>(epoch.test_total());
    if (!row_.best_correct || accuracy > static_cast<double>(*row_.best_correct) /
                                             static_cast<double>(*row_.best_total)) {
      row_.best_correct = epoch.test_correct();
      row_.best_total = epoch.test_total();
    }
    return std::nullopt;
  }

  Check Store(const v1::HeadAblation& ablation) {
    if (Check problem = CheckAsked(event::IdOf(ablation)); problem) return problem;
    result_.advanced = StoreMatrix(batch_, row_, ablation, event_.now);
    return std::nullopt;
  }

  Check Store(const v1::AnalysisResult& result) {
    if (Check problem = CheckAsked(event::IdOf(result)); problem) return problem;
    result_.advanced = StoreResult(batch_, row_, result, event_.now);
    return std::nullopt;
  }

  // Nobody would ask for the stored result of another analysis, and nobody could remove it.
  Check CheckAsked(const event::AnalysisId& sent) const {
    std::vector<std::string> asked;
    for (const Analysis& analysis : AnalysesFromJson(row_.analyses_json)) {
      const event::AnalysisId id{analysis.name, analysis.version, analysis.parameters_json};
      if (id == sent) return std::nullopt;
      asked.push_back(event::ToText(id));
    }
    return Problem{absl::StrCat("it sent the analysis ", event::ToText(sent),
                                ", which it was not asked for; asked for: ",
                                asked.empty() ? "none" : absl::StrJoin(asked, "; "))};
  }

  Check Keep(const v1::Artifact& artifact) {
    // Until the attempt ends, no file that it has sent is removed.
    const std::string wrong = batch_.WhatIsWrongWithFile(artifact.sha256(), artifact.bytes());
    if (!wrong.empty()) return Problem{absl::StrCat("file ", artifact.name(), ": ", wrong)};
    batch_.db.Execute(
        "INSERT OR REPLACE INTO artifacts (attempt_id, name, sha256, bytes) VALUES (?, ?, ?, ?)",
        row_.attempt_id, artifact.name(), artifact.sha256(), artifact.bytes());
    Named(artifact.sha256());
    return std::nullopt;
  }

  Check Keep(const v1::Checkpoint& checkpoint) {
    if (!row_.start_epoch || checkpoint.epoch() < *row_.start_epoch ||
        checkpoint.epoch() > row_.epochs_done) {
      return Problem{absl::StrCat("it sent a checkpoint of epoch ", checkpoint.epoch(),
                                  "; allowed: from its start to epoch ", row_.epochs_done,
                                  ", the last that is stored")};
    }
    StoreCheckpoint(batch_, row_, checkpoint, event_.now);
    Named(checkpoint.sha256());
    return std::nullopt;
  }

  Check Finish(const v1::Finished& finished) {
    switch (finished.outcome()) {
      case v1::ATTEMPT_OUTCOME_SUCCEEDED:
        return Succeed(finished);
      case v1::ATTEMPT_OUTCOME_PREEMPTED:
        End(state::Event::kPreempt, finished);
        return std::nullopt;
      case v1::ATTEMPT_OUTCOME_CANCELLED:
        End(state::Event::kStopped, finished);
        return std::nullopt;
      default:
        End(state::Event::kFail, finished);
        return std::nullopt;
    }
  }

  // The settings of the first attempt apply to the whole job. Otherwise its epochs would depend on
  // where the job was interrupted.
  Check Freeze(const v1::Started& started) {
    if (row_.trained) return std::nullopt;
    std::optional<std::string> first_json;
    if (started.has_execution()) {
      const Execution now = ToExecution(started.execution());
      if (row_.execution && now != *row_.execution) {
        const Execution& first = *row_.execution;
        return Problem{absl::StrCat("it computes with ", now.threads, " threads, micro-batches of ",
                                    now.micro_batch, " and packing ", now.packing,
                                    "; the job began with ", first.threads, ", ", first.micro_batch,
                                    " and ", first.packing)};
      }
      first_json = absl::StrCat("{\"threads\":", now.threads, ",\"micro_batch\":", now.micro_batch,
                                ",\"packing\":", now.packing, "}");
      row_.execution = now;
    }
    batch_.db.Execute(
        "UPDATE jobs SET device = ?, execution_json = coalesce(execution_json, ?) "
        "WHERE job_id = ?",
        row_.device, first_json, row_.job_id);
    return std::nullopt;
  }

  Check Succeed(const v1::Finished& finished) {
    std::vector<std::string> missing;
    if (!row_.start_epoch) missing.push_back("its trainer's hello");
    if (row_.epochs_done < row_.epochs) {
      missing.push_back(absl::StrCat("epochs ", row_.epochs_done, " to ", row_.epochs - 1));
    }
    for (const Analysis& analysis :
         MissingAnalyses(batch_.db, row_.job_id, AnalysesFromJson(row_.analyses_json))) {
      missing.push_back(absl::StrCat("the analysis ", analysis.name));
    }
    if (missing.empty()) {
      End(state::Event::kSucceed, finished);
      return std::nullopt;
    }
    v1::Finished failed = finished;
    failed.set_error_kind(v1::ERROR_KIND_INTERNAL);
    failed.set_error(absl::StrCat("its trainer said that it was done, but this is missing: ",
                                  absl::StrJoin(missing, ", ")));
    End(state::Event::kFail, failed);
    return std::nullopt;
  }

  void End(state::Event what, const v1::Finished& finished) {
    const std::int64_t job_id = row_.job_id;
    if (what == state::Event::kSucceed && !row_.trained) {
      row_.wall_seconds = finished.wall_seconds() + SecondsBefore(row_.start_epoch.value_or(0));
      std::optional<std::string> warning;
      if (!finished.warning().empty()) warning = Shorten(finished.warning(), limits::kErrorBytes);
      batch_.db.Execute("UPDATE jobs SET warning = ? WHERE job_id = ?", warning, job_id);
    }
    row_.last_sequence = event_.event->sequence();
    row_.sequence_dirty = true;
    JobEvent end{.event = what,
                 .error_kind = event::ErrorKindOf(finished.error_kind()),
                 .error = finished.error(),
                 .now = event_.now,
                 .jitter = event_.jitter,
                 .attempt_id = row_.attempt_id,
                 .never_started = finished.never_started() && !row_.start_epoch,
                 .energy_joules = If(finished.has_energy_joules(), finished.energy_joules())};
    if (what == state::Event::kFail) {
      if (end.error_kind == state::ErrorKind::kNone) end.error_kind = state::ErrorKind::kInternal;
      if (end.error.empty()) end.error = "the worker did not say why";
    }
    result_.change = SharedMove(batch_, job_id, end);
    result_.advanced = true;
  }

  // Seconds of the epochs that this attempt took over from earlier ones.
  double SecondsBefore(int start) {
    if (start == 0) return 0;
    batch_.staging.MoveJob(row_.job_id);
    Query sum = batch_.db.Run(
        "SELECT coalesce(sum(seconds), 0) FROM accepted_epochs "
        "WHERE waits = 0 AND job_id = ? AND epoch < ?",
        row_.job_id, start);
    return sum.Step() ? sum.Real(0) : 0;
  }

  // From now on another row keeps the file.
  void Named(const std::string& sha256) {
    batch_.db.Execute("DELETE FROM uploads WHERE attempt_id = ? AND sha256 = ?", row_.attempt_id,
                      sha256);
  }

  Batch& batch_;
  const AttemptEvent& event_;
  AttemptRow& row_;
  EventStored& result_;
};

void Refuse(Batch& batch, const AttemptEvent& event, AttemptRow& row, const Problem& problem,
            EventStored& result) {
  const std::int64_t job_id = row.job_id;
  const std::int64_t row_id = row.attempt_id;
  batch.Flush(row);
  result.status = EventStored::kSuperseded;
  result.change = SharedMove(batch, job_id,
                             {.event = state::Event::kFail,
                              .error_kind = problem.kind,
                              .error = problem.message,
                              .now = event.now,
                              .jitter = event.jitter});
  batch.attempts.Forget(row_id);
}

}  // namespace

bool IsOf(const AttemptRow* row, std::uint64_t token,
          const std::shared_ptr<const std::string>& worker) {
  return row != nullptr && row->token == token && (worker == nullptr || row->worker_id == *worker);
}

AttemptRow* Batch::Load(std::int64_t attempt_id) {
  if (AttemptRow* known = attempts.Use(attempt_id)) return known;
  Query query = db.Run(
      "SELECT a.token, a.last_sequence, a.job_id, a.device, a.analyses_json, a.start_epoch, "
      "a.outcome IS NULL, j.epochs, j.epochs_done, j.best_test_correct, j.best_test_total, "
      "j.trained, j.execution_json, a.worker_id, j.configuration_id "
      "FROM attempts AS a JOIN jobs AS j USING (job_id) WHERE a.attempt_id = ?",
      attempt_id);
  if (!query.Step()) return nullptr;
  AttemptRow row{.attempt_id = attempt_id,
                 .token = static_cast<std::uint64_t>(query.Int(0)),
                 .last_sequence = static_cast<std::uint64_t>(query.Int(1)),
                 .job_id = query.Int(2),
                 .configuration_id = query.Int(14),
                 .worker_id = query.Text(13),
                 .device = query.Text(3),
                 .analyses_json = query.Text(4),
                 .open = query.Int(6) != 0,
                 .trained = query.Int(11) != 0,
                 .epochs = static_cast<int>(query.Int(7)),
                 .epochs_done = static_cast<int>(query.Int(8)),
                 .epochs_counted = static_cast<int>(query.Int(8))};
  if (!query.IsNull(5)) row.start_epoch = static_cast<int>(query.Int(5));
  if (!query.IsNull(9)) {
    row.best_correct = query.Int(9);
    row.best_total = query.Int(10);
  }
  row.execution = ReadExecution(query, 12);
  return &attempts.Add(std::move(row));
}

void Batch::Flush(AttemptRow& row) {
  if (row.sequence_dirty) {
    db.Execute("UPDATE attempts SET last_sequence = ? WHERE attempt_id = ?", row.last_sequence,
               row.attempt_id);
  }
  if (row.last) {
    db.Execute(
        "UPDATE jobs SET epochs_done = ?, train_correct = ?, train_total = ?, test_correct = ?, "
        "test_total = ?, best_test_correct = ?, best_test_total = ?, train_loss = ?, "
        "test_loss = ?, train_eval_correct = ?, train_eval_total = ?, "
        "wall_seconds = coalesce(?, wall_seconds) WHERE job_id = ?",
        row.epochs_done, row.last->train_correct(), row.last->train_total(),
        row.last->test_correct(), row.last->test_total(), row.best_correct, row.best_total,
        row.last->train_loss(), row.last->test_loss(),
        If(row.last->has_train_eval_total(), row.last->train_eval_correct()),
        If(row.last->has_train_eval_total(), row.last->train_eval_total()), row.wall_seconds,
        row.job_id);
    if (row.epochs_done == row.epochs) JudgeDivergence(db, row.job_id);
  } else if (row.wall_seconds) {
    db.Execute("UPDATE jobs SET wall_seconds = ? WHERE job_id = ?", *row.wall_seconds, row.job_id);
  }
  CountEpochs(row, row.epochs_done - row.epochs_counted);
  row.epochs_counted = row.epochs_done;
  row.sequence_dirty = false;
  row.last.reset();
  row.wall_seconds.reset();
}

void Batch::FlushAll() {
  attempts.ForEachUsed([this](AttemptRow& row) { Flush(row); });
}

void Batch::ForgetAll() {
  FlushAll();
  attempts.ForgetAll();
}

WriteResult Do(Batch& batch, const AttemptEvent& write) {
  const v1::Event& event = *write.event;
  EventStored result{.attempt_id = event.attempt_id()};
  AttemptRow* row = batch.Load(event.attempt_id());
  if (!IsOf(row, event.token(), write.worker)) {
    result.foreign = row != nullptr;
    return result;
  }
  result.acknowledged = row->last_sequence;
  if (event.sequence() <= row->last_sequence) {
    result.status = EventStored::kDuplicate;
    return result;
  }
  if (!row->open) return result;
  if (event.sequence() != row->last_sequence + 1) {
    result.status = EventStored::kGap;
    return result;
  }
  if (const Check problem = Handler(batch, write, *row, result).Take(event)) {
    Refuse(batch, write, *row, *problem, result);
    return result;
  }
  result.status = EventStored::kStored;
  result.acknowledged = event.sequence();
  // After a transition the row no longer exists; after a hello that reset the summary its values
  // are outdated.
  if (event.has_finished()) return result;
  if (!row->start_epoch && event.has_started()) {
    batch.attempts.Forget(event.attempt_id());
    return result;
  }
  row->last_sequence = event.sequence();
  row->sequence_dirty = true;
  return result;
}

}  // namespace pelab::store
