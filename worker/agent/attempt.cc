#include "worker/agent/attempt.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/catalog/catalog.h"
#include "core/rpc/backoff.h"
#include "worker/agent/limits.h"

namespace pelab::agent {
namespace {

// How long the upload of the last checkpoint of a preempted trainer may take.
constexpr absl::Duration kHandOverTime = absl::Minutes(2);
constexpr absl::Duration kFullDiskPause = absl::Seconds(1);

// For the attempt's span, if there is no event of its end.
v1::Finished EndedAs(v1::AttemptOutcome outcome) {
  v1::Finished finished;
  finished.set_outcome(outcome);
  return finished;
}

}  // namespace

std::string WeightsPath(const AttemptContext& context, const v1::Assignment& assignment) {
  return absl::StrCat(context.work_dir->AttemptDir(assignment.attempt_id()),
                      "/weights.safetensors");
}

Attempt::Attempt(const AttemptContext* context, v1::Assignment assignment,
                 std::unique_ptr<Spool> spool)
    : context_(context),
      assignment_(std::move(assignment)),
      spool_(std::move(spool)),
      log_(absl::StrCat(context->work_dir->AttemptDir(assignment_.attempt_id()), "/log")),
      trace_(assignment_),
      spans_(assignment_, *context->clock, context->spans),
      traceparent_(spans_.traceparent()),
      log_ids_(IdsOf(assignment_)) {}

Attempt::~Attempt() {
  if (thread_.joinable()) thread_.join();
}

// Beginning and ending ----------------------------------------------------------------------------

void Attempt::StartUpload(event::DoneLine done) {
  ended_ = false;
  thread_ = std::thread([this, done = std::move(done)] {
    const LogScope scope(log_ids_);
    RunUpload(done);
    Leave();
  });
}

void Attempt::FinishInterrupted() {
  Finish(InterruptedByDaemon());
  Leave();
}

void Attempt::Enter(int slot) {
  slot_ = slot;
  ended_ = false;
}

void Attempt::Leave() {
  StopMeter();  // if the attempt ended without an event
  slot_ = -1;
  ended_ = true;
  context_->notify();
}

void Attempt::Stop(StopReason reason, absl::Duration grace) {
  StopReason current = stop_reason();
  while (current < reason && !stop_reason_.compare_exchange_weak(current, reason)) {
  }
  MutexLock lock(&mutex_);
  grace_ = std::min(grace_, grace);
  const absl::Duration hand_over =
      reason == StopReason::kShutdown ? context_->farewell_upload : grace + kHandOverTime;
  hand_over_until_ = std::min(hand_over_until_, absl::Now() + hand_over);
}

absl::Duration Attempt::grace() {
  MutexLock lock(&mutex_);
  return grace_;
}

bool Attempt::WaitForStop(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  const auto stopped = [this] { return stop_reason() != StopReason::kNone; };
  return mutex_.AwaitFor(stopped, timeout);
}

bool Attempt::BeginStep() {
  MutexLock lock(&mutex_);
  in_step_ = !settled();
  return in_step_;
}

void Attempt::EndStep() {
  MutexLock lock(&mutex_);
  in_step_ = false;
}

void Attempt::SettleByTrainer(const ExitStatus& exit, const absl::Status& output) {
  if (settled()) return;
  SettleAs(trace_.Conclude(exit, stop_reason(), output, log_.Tail(), SecondsOfTrainer()));
}

void Attempt::SettleStopped() {
  // Like an attempt whose trainer was ended by the signal without printing anything.
  v1::Finished finished = TrainerTrace(assignment_)
                              .Conclude({.signaled = true, .code = SIGTERM}, stop_reason(),
                                        absl::OkStatus(), "", SecondsOfTrainer());
  finished.set_never_started(finished.outcome() == v1::ATTEMPT_OUTCOME_PREEMPTED &&
                             !TrainerHasStarted());
  SettleAs(std::move(finished));
}

void Attempt::SettleAs(v1::Finished finished) {
  MutexLock lock(&mutex_);
  if (settled()) return;
  settled_ = true;
  thread_ = std::thread([this, finished = std::move(finished)]() mutable {
    const LogScope scope(log_ids_);
    {
      MutexLock wait(&mutex_);
      const auto alone = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !in_step_; };
      mutex_.Await(alone);
    }
    WrapUp(std::move(finished));
    MutexLock done(&mutex_);
    wrapped_up_ = true;
  });
}

void Attempt::AwaitEnd() {
  MutexLock lock(&mutex_);
  const auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return wrapped_up_; };
  mutex_.Await(over);
}

void Attempt::WrapUp(v1::Finished finished) {
  if (uploader_.has_value() && finished.outcome() == v1::ATTEMPT_OUTCOME_PREEMPTED) {
    HandOver(*uploader_);
  }
  uploader_.reset();
  const bool upload = finished.outcome() == v1::ATTEMPT_OUTCOME_SUCCEEDED &&
                      trace_.done().has_value() && !trace_.done()->weights_file.empty();
  if (upload) {
    const bool over = Upload(*trace_.done(), finished.mutable_warning());
    spans_.Uploaded();
    if (!over) return spans_.Ended(EndedAs(v1::ATTEMPT_OUTCOME_PREEMPTED));
  }
  Finish(std::move(finished));
}

bool Attempt::TrainerHasStarted() {
  MutexLock lock(&mutex_);
  return trainer_started_ != absl::InfiniteDuration();
}

double Attempt::SecondsOfTrainer() {
  MutexLock lock(&mutex_);
  return std::max(0.0, absl::ToDoubleSeconds(context_->clock->Monotonic() - trainer_started_));
}

std::optional<double> Attempt::StopMeter() {
  return context_->energy == nullptr ? std::nullopt
                                     : context_->energy->End(assignment_.attempt_id());
}

// Training ----------------------------------------------------------------------------------------

void Attempt::SlotTaken(const std::string& gpu) {
  if (context_->energy == nullptr || gpu.empty() || !BeginStep()) return;
  context_->energy->Begin(assignment_.attempt_id(), gpu);
  EndStep();
}

absl::Status Attempt::Fetch(const std::string& job_dir, absl::Duration patience) {
  const LogScope scope(log_ids_);
  if (assignment_.has_weights()) return FetchWeights();
  CheckpointPlace place = PlaceOf(job_dir);
  place.stopped = [this] { return stop_reason() != StopReason::kNone; };
  place.pause = [this](absl::Duration pause) { WaitForStop(pause); };
  FetchCheckpoint(place, patience);
  return absl::OkStatus();
}

void Attempt::TrainerStarted(const std::string& job_dir, bool any_packing) {
  if (!BeginStep()) return;
  any_packing_ = any_packing;
  if (!assignment_.has_weights() && context_->checkpoint_upload > absl::ZeroDuration()) {
    uploader_.emplace(PlaceOf(job_dir), context_->checkpoint_upload,
                      [this](v1::Event event) { return Spooled(std::move(event)); });
  }
  {
    MutexLock lock(&mutex_);
    trainer_started_ = context_->clock->Monotonic();
  }
  spans_.Fetched();
  EndStep();
}

absl::Status Attempt::OnLine(event::TrainerLine line) {
  if (!BeginStep()) return absl::OkStatus();
  const LogScope scope(log_ids_);
  const absl::Status status = Take(std::move(line));
  if (uploader_.has_value()) uploader_->Offer(trace_.checkpoint());
  EndStep();
  // If the attempt was settled meanwhile, an error in this line no longer matters.
  return settled() ? absl::OkStatus() : status;
}

absl::Status Attempt::Take(event::TrainerLine line) {
  if (auto* fact = std::get_if<event::FactLine>(&line);
      fact != nullptr && fact->event.has_started()) {
    v1::Execution* now = fact->event.mutable_started()->mutable_execution();
    // The trainer reports packing 1 if the number changes no result. Then keep the recorded number.
    if (any_packing_ && assignment_.has_execution() && now->packing() == 1) {
      now->set_packing(assignment_.execution().packing());
    }
  }
  PELAB_ASSIGN_OR_RETURN(std::optional<v1::Event> event, trace_.Accept(std::move(line)));
  if (event.has_value()) {
    spans_.Said(*event);
    if (event->has_epoch()) last_epoch_seconds_ = event->epoch().seconds();
    return Spooled(*std::move(event));
  }
  if (!trace_.done().has_value() || trace_.done()->weights_file.empty()) return absl::OkStatus();
  return context_->work_dir->SaveUpload(assignment_.attempt_id(), *trace_.done());
}

void Attempt::OnStderr(absl::string_view bytes) {
  log_.Append(bytes);
  context_->notify();
}

CheckpointPlace Attempt::PlaceOf(const std::string& job_dir) {
  const auto no_longer_wanted = [this] { return stop_reason() >= StopReason::kCancel; };
  return {.artifacts = context_->artifacts,
          .assignment = &assignment_,
          .job_dir = job_dir,
          .attempt_dir = context_->work_dir->AttemptDir(assignment_.attempt_id()),
          .stopped = no_longer_wanted,
          .pause =
              [this, no_longer_wanted](absl::Duration pause) {
                MutexLock lock(&mutex_);
                mutex_.AwaitFor(no_longer_wanted, pause);
              },
          .note = [this](const std::string& text) { Note(text); },
          .retry_cap = context_->retry_cap.Get()};
}

void Attempt::HandOver(CheckpointUploader& uploader) {
  absl::Time until;
  {
    MutexLock lock(&mutex_);
    hand_over_until_ = std::min(hand_over_until_, absl::Now() + kHandOverTime);
    until = hand_over_until_;
  }
  // If the daemon ends while the coordinator is away, the file stays here for the next daemon.
  uploader.Finish(until, /*persist=*/stop_reason() != StopReason::kShutdown);
}

absl::Status Attempt::Spooled(v1::Event event) {
  event.set_attempt_id(assignment_.attempt_id());
  event.set_token(assignment_.token());
  event.set_time_ms(absl::ToUnixMillis(context_->clock->Wall()));
  PELAB_RETURN_IF_ERROR(AppendWhenThereIsRoom(event));
  context_->notify();
  return absl::OkStatus();
}

// A full disk pauses training like a full spool: the trainer waits until its line is read.
absl::Status Attempt::AppendWhenThereIsRoom(const v1::Event& event) {
  absl::Status status = spool_->Append(event);
  if (!absl::IsResourceExhausted(status)) return status;
  spdlog::error("attempt {}: {}; it waits for room", assignment_.attempt_id(),
                std::string(status.message()));
  while (absl::IsResourceExhausted(status) && !WaitForStop(kFullDiskPause)) {
    status = spool_->Append(event);
  }
  return status;
}

void Attempt::RunUpload(const event::DoneLine& done) {
  v1::Finished finished;
  const bool over = Upload(done, finished.mutable_warning());
  spans_.Uploaded();
  if (!over) return spans_.Ended(EndedAs(v1::ATTEMPT_OUTCOME_PREEMPTED));
  finished.set_outcome(v1::ATTEMPT_OUTCOME_SUCCEEDED);
  finished.set_wall_seconds(done.wall_seconds);
  Finish(std::move(finished));
}

absl::Status Attempt::FetchWeights() {
  const ArtifactFile file = {WeightsPath(*context_, assignment_), assignment_.weights().sha256(),
                             assignment_.weights().bytes(), assignment_.attempt_id(),
                             assignment_.token()};
  return Get(file);
}

absl::Status Attempt::FetchFiles() {
  // Data is no code, so its files are fetched all the same.
  if (!context_->own_encodings && assignment_.pe() == catalog::OwnPe().name) {
    return absl::FailedPreconditionError(
        "this worker runs no encodings from files (--own-encodings off)");
  }
  for (const v1::NeededFile& needed : assignment_.files()) {
    if (context_->files->Has(needed)) continue;
    const std::string fetched =
        absl::StrCat(context_->work_dir->AttemptDir(assignment_.attempt_id()), "/encoding.pt");
    // Without bytes, the coordinator says that it does not know the file.
    const absl::Status status = needed.bytes() == 0
                                    ? absl::NotFoundError("")
                                    : Get({fetched, needed.sha256(), needed.bytes(),
                                           assignment_.attempt_id(), assignment_.token()});
    if (absl::IsNotFound(status)) {
      return absl::NotFoundError(absl::StrCat("the coordinator has no file ", needed.sha256(),
                                              " that the job needs; submit the sweep again"));
    }
    if (!status.ok()) return Annotate(status, "cannot fetch a file that the job needs");
    PELAB_RETURN_IF_ERROR(context_->files->Put(fetched, needed.sha256()));
  }
  return absl::OkStatus();
}

absl::Status Attempt::Get(const ArtifactFile& file) {
  const auto stopped = [this] { return stop_reason() != StopReason::kNone; };
  rpc::Backoff backoff(absl::Milliseconds(100), context_->retry_cap.Get(), RandomUnit);
  while (true) {
    absl::Status status = context_->artifacts->Get(file, stopped);
    // RESOURCE_EXHAUSTED: too many downloads at once.
    const bool again = IsWorthRetrying(status) || absl::IsResourceExhausted(status);
    if (status.ok() || stopped() || !again) return status;
    spdlog::debug("attempt {}: cannot fetch a file yet: {}", assignment_.attempt_id(),
                  std::string{status.message()});
    WaitForStop(backoff.Next());
    if (stopped()) return status;
  }
}

bool Attempt::Upload(const event::DoneLine& done, std::string* warning) {
  const absl::StatusOr<std::string> job_dir = context_->work_dir->JobDir(assignment_);
  const ArtifactFile file = {absl::StrCat(job_dir.value_or("."), "/", done.weights_file),
                             done.sha256, done.bytes, assignment_.attempt_id(),
                             assignment_.token()};
  // A drain leaves time to upload finished weights. A shutdown leaves the upload to the next
  // daemon.
  const auto give_up = [this] {
    return stop_reason() != StopReason::kNone && stop_reason() != StopReason::kPreempt;
  };
  rpc::Backoff backoff(absl::Milliseconds(100), context_->retry_cap.Get(), RandomUnit);
  while (!give_up()) {
    const absl::Status status = context_->artifacts->Put(file, give_up);
    if (status.ok()) {
      v1::Event event;
      event.mutable_artifact()->set_name(
          std::filesystem::path(done.weights_file).filename().string());
      event.mutable_artifact()->set_sha256(done.sha256);
      event.mutable_artifact()->set_bytes(done.bytes);
      if (const absl::Status spooled = Spooled(std::move(event)); !spooled.ok())
        *warning = GiveUpUpload(done, spooled);
      return true;
    }
    if (give_up()) break;
    if (!IsWorthRetrying(status)) {
      *warning = GiveUpUpload(done, status);
      return true;
    }
    spdlog::debug("attempt {}: cannot upload weights yet: {}", assignment_.attempt_id(),
                  std::string(status.message()));
    const absl::Duration pause = backoff.Next();
    if (stop_reason() == StopReason::kNone) {
      WaitForStop(pause);
    } else {
      MutexLock lock(&mutex_);  // draining: only a stronger reason ends the pause
      mutex_.AwaitFor(give_up, pause);
    }
  }
  return stop_reason() != StopReason::kShutdown;
}

std::string Attempt::GiveUpUpload(const event::DoneLine& done, const absl::Status& status) {
  const absl::StatusOr<std::string> kept = context_->work_dir->Keep(assignment_, done.weights_file);
  std::string text = absl::StrCat("the weights could not be uploaded: ", status.message(), "; ",
                                  kept.ok() ? absl::StrCat("they are kept on its host in ", *kept)
                                            : std::string(kept.status().message()));
  Note(text);
  return text;
}

void Attempt::Finish(v1::Finished finished) {
  const std::optional<double> joules = StopMeter();
  if (stop_reason() == StopReason::kCancel && finished.outcome() != v1::ATTEMPT_OUTCOME_CANCELLED) {
    finished = v1::Finished();
    finished.set_outcome(v1::ATTEMPT_OUTCOME_CANCELLED);
  }
  spans_.Ended(stop_reason() == StopReason::kSupersede ? EndedAs(v1::ATTEMPT_OUTCOME_SUPERSEDED)
                                                       : finished);
  if (stop_reason() == StopReason::kSupersede) return;
  // They may quote a trainer's output, a path or a message of the system. A Protobuf string that is
  // not UTF-8 could not be read back from the spool.
  finished.set_error(Shorten(finished.error(), limits::kErrorBytes));
  finished.set_warning(Shorten(finished.warning(), limits::kErrorBytes));
  if (joules.has_value()) finished.set_energy_joules(*joules);
  if (finished.outcome() == v1::ATTEMPT_OUTCOME_FAILED) Note(finished.error());
  v1::Event event;
  *event.mutable_finished() = std::move(finished);
  while (true) {
    const absl::Status status = Spooled(event);
    if (status.ok()) return;
    spdlog::error("attempt {}: cannot record how it ended: {}; trying again",
                  assignment_.attempt_id(), std::string(status.message()));
    // The disk is full. Until there is room, the coordinator must not think that the slot is free.
    // A stop of the daemon or of the attempt ends this wait; then the lease expires.
    if (WaitForStop(kFullDiskPause)) return;
  }
}

void Attempt::Note(const std::string& text) {
  const LogScope scope(log_ids_);
  spdlog::warn("attempt {} ({}): {}", assignment_.attempt_id(), assignment_.label(), text);
  log_.Append(absl::StrCat("pelab-worker: ", text, "\n"));
  context_->notify();
}

}  // namespace pelab::agent
