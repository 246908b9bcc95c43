#include "worker/agent/trainer_trace.h"

#include <signal.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/event/enums.h"

namespace pelab::agent {
namespace {

constexpr int kUnknownLogged = 3;
constexpr std::size_t kUnknownBytes = 100;

// An error kind besides the outcome tells the coordinator that this worker did not ask for the
// stop.
constexpr char kKilledByOthers[] =
    "the trainer was ended by a SIGTERM, which its worker had not sent: it came from elsewhere, "
    "while the trainer was starting";
constexpr char kStoppedByOthers[] =
    "the trainer stopped with its checkpoint kept (status 75), which its worker had not asked for: "
    "it got a SIGTERM from elsewhere";

v1::Finished Ended(v1::AttemptOutcome outcome, absl::string_view message, double wall_seconds) {
  v1::Finished finished;
  finished.set_outcome(outcome);
  finished.set_error(std::string(message));
  finished.set_wall_seconds(wall_seconds);
  return finished;
}

// The last line that is not empty, at most 300 bytes of it.
std::string LastLine(absl::string_view text) {
  text = absl::StripTrailingAsciiWhitespace(text);
  const std::size_t newline = text.rfind('\n');
  absl::string_view line = newline == absl::string_view::npos ? text : text.substr(newline + 1);
  line = absl::StripAsciiWhitespace(line.substr(0, 300));
  std::string clean;
  // The message is a Protobuf string and must be UTF-8. A longer character may have been cut in the
  // middle.
  for (const char c : line) clean += absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?';
  return clean;
}

}  // namespace

v1::Finished Failed(state::ErrorKind kind, absl::string_view message) {
  v1::Finished finished = Ended(v1::ATTEMPT_OUTCOME_FAILED, message, 0);
  finished.set_error_kind(event::ToProto(kind));
  return finished;
}

v1::Finished InterruptedByDaemon() {
  return Ended(v1::ATTEMPT_OUTCOME_PREEMPTED,
               "its worker daemon ended without notice, and the trainer with it", 0);
}

TrainerTrace::TrainerTrace(const v1::Assignment& assignment)
    : max_start_epoch_(assignment.max_start_epoch()),
      analyses_only_(assignment.has_weights()),
      execution_(assignment.has_execution() ? std::optional(assignment.execution()) : std::nullopt),
      facts_(event::FactsOf(assignment.spec_json())) {
  for (const v1::Analysis& analysis : assignment.analyses()) {
    missing_analyses_.insert({analysis.name(), analysis.version(), analysis.parameters_json()});
  }
}

absl::Status TrainerTrace::CheckStart(const v1::Started& started) const {
  if (started_) return absl::InvalidArgumentError("the trainer said hello twice");
  if (started.start_epoch() > max_start_epoch_ || started.start_epoch() > started.epochs()) {
    return absl::InvalidArgumentError(absl::StrCat("the trainer starts at epoch ",
                                                   started.start_epoch(), " of ", started.epochs(),
                                                   "; allowed: at most ", max_start_epoch_));
  }
  if (analyses_only_) {
    if (started.start_epoch() == started.epochs()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the trainer starts at epoch ",
                                                   started.start_epoch(), " of ", started.epochs(),
                                                   ", but was asked for analyses only"));
  }
  const v1::Execution& now = started.execution();
  if (!execution_ ||
      (now.threads() == execution_->threads() && now.micro_batch() == execution_->micro_batch() &&
       now.packing() == execution_->packing())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the trainer computes with ", now.threads(), " threads, micro-batches of ", now.micro_batch(),
      " and packing ", now.packing(), "; the job began with ", execution_->threads(), ", ",
      execution_->micro_batch(), " and ", execution_->packing()));
}

absl::Status TrainerTrace::AcceptFact(const v1::Event& event) {
  if (event.has_started()) {
    const v1::Started& started = event.started();
    PELAB_RETURN_IF_ERROR(CheckStart(started));
    started_ = true;
    next_epoch_ = started.start_epoch();
    epochs_ = started.epochs();
    if (!analyses_only_) checkpoint_ = next_epoch_;
    return absl::OkStatus();
  }
  if (!started_)
    return absl::InvalidArgumentError("the trainer reported a result before its hello");
  if (const std::string wrong = facts_ ? event::WhatIsWrong(event, *facts_) : ""; !wrong.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the trainer printed what cannot be: ", wrong));
  }
  if (event.has_epoch()) {
    if (event.epoch().epoch() != next_epoch_ || next_epoch_ >= epochs_) {
      return absl::InvalidArgumentError(absl::StrCat("the trainer reported epoch ",
                                                     event.epoch().epoch(), " of ", epochs_,
                                                     "; expected ", next_epoch_));
    }
    ++next_epoch_;
    return absl::OkStatus();
  }
  return AcceptAnalysis(event.has_head_ablation() ? event::IdOf(event.head_ablation())
                                                  : event::IdOf(event.analysis()));
}

absl::Status TrainerTrace::AcceptAnalysis(const event::AnalysisId& analysis) {
  const auto missing = missing_analyses_.find(analysis);
  if (missing == missing_analyses_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("the trainer reported the analysis ",
                                                   event::ToText(analysis),
                                                   ", which was not asked for"));
  }
  missing_analyses_.erase(missing);
  return absl::OkStatus();
}

absl::Status TrainerTrace::AcceptCheckpoint(const event::CheckpointLine& line) {
  if (!started_ || line.epoch > next_epoch_) {
    return absl::InvalidArgumentError(absl::StrCat("the trainer kept a checkpoint of epoch ",
                                                   line.epoch, " after ", next_epoch_, " epochs"));
  }
  checkpoint_ = line.epoch;
  return absl::OkStatus();
}

absl::Status TrainerTrace::AcceptDone() const {
  if (!started_ || next_epoch_ != epochs_) {
    return absl::InvalidArgumentError(absl::StrCat("the trainer says that it is done after ",
                                                   next_epoch_, " of ", epochs_, " epochs"));
  }
  if (!missing_analyses_.empty()) {
    std::vector<std::string> missing;
    for (const event::AnalysisId& analysis : missing_analyses_) {
      missing.push_back(event::ToText(analysis));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "the trainer says that it is done without analysis ", absl::StrJoin(missing, "; ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<v1::Event>> TrainerTrace::Accept(event::TrainerLine line) {
  if (done_.has_value() || error_.has_value()) {
    return absl::InvalidArgumentError("the trainer went on after its last event");
  }
  if (auto* fact = std::get_if<event::FactLine>(&line)) {
    PELAB_RETURN_IF_ERROR(AcceptFact(fact->event));
    return std::move(fact->event);
  }
  if (const auto* checkpoint = std::get_if<event::CheckpointLine>(&line)) {
    PELAB_RETURN_IF_ERROR(AcceptCheckpoint(*checkpoint));
  } else if (auto* done = std::get_if<event::DoneLine>(&line)) {
    PELAB_RETURN_IF_ERROR(AcceptDone());
    done_ = std::move(*done);
  } else if (auto* error = std::get_if<event::ErrorLine>(&line)) {
    error_ = std::move(*error);
  } else if (const auto* unknown = std::get_if<event::UnknownLine>(&line)) {
    OnUnknown(unknown->name);
  }
  return std::nullopt;
}

void TrainerTrace::OnUnknown(const std::string& name) {
  if (++unknown_ > kUnknownLogged) return;
  spdlog::warn("ignoring a trainer's event \"{}\", which this version does not know{}",
               absl::CHexEscape(name.substr(0, kUnknownBytes)),
               unknown_ < kUnknownLogged ? "" : "; further ones of this attempt are not logged");
}

v1::Finished TrainerTrace::Conclude(const ExitStatus& exit, StopReason reason,
                                    const absl::Status& output, absl::string_view last_words,
                                    double wall_seconds) const {
  if (reason == StopReason::kCancel || reason == StopReason::kSupersede) {
    return Ended(v1::ATTEMPT_OUTCOME_CANCELLED, "", wall_seconds);
  }
  const bool succeeded = done_.has_value() && exit.ok();
  // A trainer that hung while exiting has already said how it ended.
  const bool stalled = absl::IsDeadlineExceeded(output) && !succeeded && !error_.has_value();
  if (stalled || (!output.ok() && !absl::IsDeadlineExceeded(output))) {
    const auto kind = absl::IsInvalidArgument(output)    ? state::ErrorKind::kInternal
                      : absl::IsDeadlineExceeded(output) ? state::ErrorKind::kStalled
                                                         : state::ErrorKind::kIo;
    v1::Finished finished = Failed(kind, {output.message().data(), output.message().size()});
    finished.set_wall_seconds(wall_seconds);
    return finished;
  }
  if (succeeded) return Ended(v1::ATTEMPT_OUTCOME_SUCCEEDED, "", done_->wall_seconds);
  if (error_.has_value()) {
    v1::Finished finished = Failed(error_->kind, error_->message);
    finished.set_wall_seconds(wall_seconds);
    return finished;
  }
  const bool stopped = reason == StopReason::kShutdown || reason == StopReason::kPreempt;
  if (stopped) {
    return Ended(v1::ATTEMPT_OUTCOME_PREEMPTED, "stopped because its worker ends or drains",
                 wall_seconds);
  }
  // A batch system that takes a host back signals every process, and a trainer may be the first.
  const bool killed = exit.signaled && exit.code == SIGTERM;
  if (killed || (!exit.signaled && exit.code == kExitStopped)) {
    v1::Finished finished = Ended(v1::ATTEMPT_OUTCOME_PREEMPTED,
                                  killed ? kKilledByOthers : kStoppedByOthers, wall_seconds);
    finished.set_error_kind(v1::ERROR_KIND_TRAINER_DIED);
    return finished;
  }
  const std::string words = LastLine(last_words);
  v1::Finished finished = Failed(
      state::ErrorKind::kTrainerDied,
      absl::StrCat("the trainer ", exit.ToString(), exit.signaled ? "" : " before it was done",
                   words.empty() ? "" : absl::StrCat("; its last words: ", words)));
  finished.set_wall_seconds(wall_seconds);
  return finished;
}

}  // namespace pelab::agent
