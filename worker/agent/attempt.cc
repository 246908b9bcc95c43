#include "worker/agent/attempt.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/rpc/backoff.h"

namespace pelab::agent {
namespace {

constexpr int kTrainerParentFd = 3;
// For a checkpoint to come while the coordinator is away: hours of training may be in it.
constexpr absl::Duration kFetchPatience = absl::Minutes(10);
// For a last checkpoint to go, after a trainer that was preempted.
constexpr absl::Duration kHandOverTime = absl::Minutes(2);
constexpr absl::Duration kFullDiskPause = absl::Seconds(1);

std::string WeightsPath(const AttemptContext& context, const v1::Assignment& assignment) {
  return absl::StrCat(context.work_dir->AttemptDir(assignment.attempt_id()),
                      "/weights.safetensors");
}

// A later attempt computes as the job's first one did, whatever this host was told.
int ThreadsOf(const AttemptContext& context, const v1::Assignment& assignment) {
  return assignment.has_execution() ? assignment.execution().threads() : context.threads;
}
std::string MicroBatchOf(const AttemptContext& context, const v1::Assignment& assignment) {
  if (assignment.has_execution()) return absl::StrCat(assignment.execution().micro_batch());
  return context.micro_batch ? absl::StrCat(*context.micro_batch) : "auto";
}

std::vector<std::string> TrainerArguments(const AttemptContext& context,
                                          const v1::Assignment& assignment, const SlotPlan& plan,
                                          const std::string& job_dir) {
  const bool analyses_only = assignment.has_weights();
  std::vector<std::string> arguments = {
      context.trainer,
      analyses_only ? "analyze" : "run",
      "--spec",
      absl::StrCat(context.work_dir->AttemptDir(assignment.attempt_id()), "/job.json"),
      "--workdir",
      job_dir,
      "--device",
      plan.trainer_device,
      "--threads",
      absl::StrCat(ThreadsOf(context, assignment)),
      "--parent-fd",
      absl::StrCat(kTrainerParentFd)};
  std::vector<std::string> more;
  if (analyses_only) {
    more = {"--weights", WeightsPath(context, assignment)};
  } else {
    const CheckpointCadence& every = context.checkpoint_every;
    more = {"--micro-batch", MicroBatchOf(context, assignment), "--resume", "--max-start-epoch",
            absl::StrCat(assignment.max_start_epoch())};
    if (every.epochs > 0) {
      more.insert(more.end(), {"--checkpoint-epochs", absl::StrCat(every.epochs)});
    } else {
      more.insert(more.end(),
                  {"--checkpoint-seconds", absl::StrCat(absl::ToDoubleSeconds(every.time))});
    }
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

Attempt::Attempt(const AttemptContext* context, v1::Assignment assignment,
                 std::unique_ptr<Spool> spool)
    : context_(context),
      assignment_(std::move(assignment)),
      spool_(std::move(spool)),
      log_(absl::StrCat(context->work_dir->AttemptDir(assignment_.attempt_id()), "/log")) {}

Attempt::~Attempt() {
  if (thread_.joinable()) thread_.join();
}

void Attempt::StartTraining(std::optional<SlotPlan> plan) {
  slot_ = plan.has_value() ? plan->slot.slot() : -1;
  ended_ = false;
  thread_ = std::thread([this, plan = std::move(plan)] {
    RunTraining(plan);
    End();
  });
}

void Attempt::StartUpload(DoneLine done) {
  ended_ = false;
  thread_ = std::thread([this, done = std::move(done)] {
    RunUpload(done);
    End();
  });
}

void Attempt::FinishInterrupted() {
  Finish(InterruptedByDaemon());
  End();
}

void Attempt::End() {
  slot_ = -1;
  ended_ = true;
  context_->notify();
}

void Attempt::Stop(StopReason reason, absl::Duration grace) {
  StopReason current = stop_reason();
  while (current < reason && !stop_reason_.compare_exchange_weak(current, reason)) {
  }
  {
    MutexLock lock(&mutex_);
    grace_ = std::min(grace_, grace);
    const absl::Duration hand_over =
        reason == StopReason::kShutdown ? context_->farewell_upload : grace + kHandOverTime;
    hand_over_until_ = std::min(hand_over_until_, absl::Now() + hand_over);
    if (process_ != nullptr) process_->Stop(grace_);
  }
  context_->reservations->Poke();
}

bool Attempt::WaitForStop(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  const auto stopped = [this] { return stop_reason() != StopReason::kNone; };
  return mutex_.AwaitFor(stopped, timeout);
}

void Attempt::RunTraining(const std::optional<SlotPlan>& plan) {
  const absl::StatusOr<std::string> job_dir = context_->work_dir->JobDir(assignment_);
  if (!job_dir.ok() || !plan.has_value()) {
    const std::string why = job_dir.ok()
                                ? absl::StrCat("this worker has no slot ", assignment_.slot())
                                : std::string(job_dir.status().message());
    Finish(Failed(v1::ERROR_KIND_INTERNAL, why));
    return;
  }
  const int slot = plan->slot.slot();
  const auto stopped = [this] { return stop_reason() != StopReason::kNone; };
  if (!context_->reservations->Acquire(slot, *job_dir, stopped)) {
    Finish(StoppedBeforeItRan());
    return;
  }
  std::optional<DoneLine> done;
  v1::Finished finished = TrainOn(*plan, *job_dir, &done);
  const bool upload = finished.outcome() == v1::ATTEMPT_OUTCOME_SUCCEEDED && done.has_value() &&
                      !done->weights_file.empty();
  if (!upload || Upload(*done)) Finish(std::move(finished));
  context_->reservations->Release(slot, *job_dir);
}

absl::StatusOr<std::unique_ptr<TrainerProcess>> Attempt::StartTrainer(const SlotPlan& plan,
                                                                      const std::string& job_dir) {
  PELAB_RETURN_IF_ERROR(CreateDirectories(job_dir));
  SpawnOptions options;
  options.argv = TrainerArguments(*context_, assignment_, plan, job_dir);
  options.env = {{"CUDA_VISIBLE_DEVICES", plan.cuda_visible_devices},
                 {"OMP_NUM_THREADS", absl::StrCat(ThreadsOf(*context_, assignment_))}};
  options.env.insert(options.env.end(), context_->environment.begin(), context_->environment.end());
  options.working_dir = job_dir;
  options.fds = {{context_->parent_fd, kTrainerParentFd}};
  return TrainerProcess::Start(std::move(options));
}

v1::Finished Attempt::StoppedBeforeItRan() const {
  return TrainerTrace(assignment_)
      .Conclude({.signaled = true, .code = 15}, stop_reason(), absl::OkStatus(), "", 0);
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

v1::Finished Attempt::TrainOn(const SlotPlan& plan, const std::string& job_dir,
                              std::optional<DoneLine>* done) {
  if (assignment_.has_weights()) {
    if (const absl::Status fetched = FetchWeights(); !fetched.ok()) {
      if (stop_reason() != StopReason::kNone) return StoppedBeforeItRan();
      return Failed(v1::ERROR_KIND_IO,
                    absl::StrCat("cannot fetch its kept weights: ", fetched.message()));
    }
  } else {
    CheckpointPlace place = PlaceOf(job_dir);
    place.stopped = [this] { return stop_reason() != StopReason::kNone; };
    place.pause = [this](absl::Duration pause) { WaitForStop(pause); };
    FetchCheckpoint(place, kFetchPatience);
    if (place.stopped()) return StoppedBeforeItRan();
  }
  absl::StatusOr<std::unique_ptr<TrainerProcess>> process = StartTrainer(plan, job_dir);
  if (!process.ok()) {
    return Failed(v1::ERROR_KIND_IO,
                  {process.status().message().data(), process.status().message().size()});
  }
  spdlog::info("attempt {}: {} on {}, trainer {}", assignment_.attempt_id(), assignment_.label(),
               plan.slot.device(), (*process)->pid());
  {
    MutexLock lock(&mutex_);
    process_ = process->get();
    if (stop_reason() != StopReason::kNone) process_->Stop(grace_);
  }
  return RunTrainer(**process, job_dir, done);
}

v1::Finished Attempt::RunTrainer(TrainerProcess& process, const std::string& job_dir,
                                 std::optional<DoneLine>* done) {
  const absl::Duration started_at = context_->clock->Monotonic();
  TrainerTrace trace(assignment_);
  std::optional<CheckpointUploader> uploader;
  if (!assignment_.has_weights() && context_->checkpoint_upload > absl::ZeroDuration()) {
    uploader.emplace(PlaceOf(job_dir), context_->checkpoint_upload,
                     [this](v1::Event event) { return Spooled(std::move(event)); });
  }
  OutputHandler handler;
  handler.on_line = [&](absl::string_view line) {
    const absl::Status status = OnLine(line, job_dir, &trace);
    if (uploader.has_value()) uploader->Offer(trace.checkpoint());
    return status;
  };
  handler.on_stderr = [this](absl::string_view bytes) {
    log_.Append(bytes);
    context_->notify();
  };
  handler.wants_output = [this] { return !context_->quota->full(); };
  absl::Status output;
  const ExitStatus exit = process.Run(handler, &output);
  {
    MutexLock lock(&mutex_);
    process_ = nullptr;
  }
  *done = trace.done();
  const double seconds = absl::ToDoubleSeconds(context_->clock->Monotonic() - started_at);
  v1::Finished finished = trace.Conclude(exit, stop_reason(), output, log_.Tail(), seconds);
  if (uploader.has_value() && finished.outcome() == v1::ATTEMPT_OUTCOME_PREEMPTED) {
    HandOver(*uploader);
  }
  return finished;
}

void Attempt::HandOver(CheckpointUploader& uploader) {
  absl::Time until;
  {
    MutexLock lock(&mutex_);
    hand_over_until_ = std::min(hand_over_until_, absl::Now() + kHandOverTime);
    until = hand_over_until_;
  }
  // Where the daemon ends and the coordinator is away, the next daemon has the file.
  uploader.Finish(until, /*persist=*/stop_reason() != StopReason::kShutdown);
}

absl::Status Attempt::OnLine(absl::string_view line, const std::string& job_dir,
                             TrainerTrace* trace) {
  PELAB_ASSIGN_OR_RETURN(TrainerLine parsed, ParseTrainerLine(line, JobName(assignment_), job_dir));
  PELAB_ASSIGN_OR_RETURN(std::optional<v1::Event> event, trace->Accept(std::move(parsed)));
  if (event.has_value()) return Spooled(*std::move(event));
  if (!trace->done().has_value() || trace->done()->weights_file.empty()) return absl::OkStatus();
  return context_->work_dir->SaveUpload(assignment_.attempt_id(), *trace->done());
}

absl::Status Attempt::Spooled(v1::Event event) {
  event.set_attempt_id(assignment_.attempt_id());
  event.set_token(assignment_.token());
  event.set_time_ms(absl::ToUnixMillis(context_->clock->Wall()));
  PELAB_RETURN_IF_ERROR(AppendWhenThereIsRoom(event));
  context_->notify();
  return absl::OkStatus();
}

// A full disk holds training back as a full spool does: its trainer waits for its line to be read.
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

void Attempt::RunUpload(const DoneLine& done) {
  if (!Upload(done)) return;
  v1::Finished finished;
  finished.set_outcome(v1::ATTEMPT_OUTCOME_SUCCEEDED);
  finished.set_wall_seconds(done.wall_seconds);
  Finish(std::move(finished));
}

absl::Status Attempt::FetchWeights() {
  const ArtifactFile file = {WeightsPath(*context_, assignment_), assignment_.weights().sha256(),
                             assignment_.weights().bytes(), assignment_.attempt_id(),
                             assignment_.token()};
  const auto stopped = [this] { return stop_reason() != StopReason::kNone; };
  rpc::Backoff backoff(absl::Milliseconds(100), context_->retry_cap.Get(), RandomUnit);
  while (true) {
    absl::Status status = context_->artifacts->Get(file, stopped);
    // RESOURCE_EXHAUSTED: too many fetch files at once.
    const bool again = IsWorthRetrying(status) || absl::IsResourceExhausted(status);
    if (status.ok() || stopped() || !again) return status;
    spdlog::debug("attempt {}: cannot fetch weights yet: {}", assignment_.attempt_id(),
                  std::string{status.message()});
    WaitForStop(backoff.Next());
    if (stopped()) return status;
  }
}

bool Attempt::Upload(const DoneLine& done) {
  const absl::StatusOr<std::string> job_dir = context_->work_dir->JobDir(assignment_);
  const ArtifactFile file = {absl::StrCat(job_dir.value_or("."), "/", done.weights_file),
                             done.sha256, done.bytes, assignment_.attempt_id(),
                             assignment_.token()};
  // A drain leaves time for what is done already; a shutdown leaves it to the next daemon.
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
        GiveUpUpload(done, spooled);
      return true;
    }
    if (give_up()) break;
    if (!IsWorthRetrying(status)) {
      GiveUpUpload(done, status);
      return true;
    }
    spdlog::debug("attempt {}: cannot upload weights yet: {}", assignment_.attempt_id(),
                  std::string(status.message()));
    const absl::Duration pause = backoff.Next();
    if (stop_reason() == StopReason::kNone) {
      WaitForStop(pause);
    } else {
      MutexLock lock(&mutex_);  // draining: only a further reason ends the pause
      mutex_.AwaitFor(give_up, pause);
    }
  }
  return stop_reason() != StopReason::kShutdown;
}

void Attempt::GiveUpUpload(const DoneLine& done, const absl::Status& status) {
  const absl::StatusOr<std::string> kept = context_->work_dir->Keep(assignment_, done.weights_file);
  Note(absl::StrCat("the weights could not be uploaded: ", status.message(), "; ",
                    kept.ok() ? absl::StrCat("they are kept on this host in ", *kept)
                              : std::string(kept.status().message())));
}

void Attempt::Finish(v1::Finished finished) {
  if (stop_reason() == StopReason::kCancel && finished.outcome() != v1::ATTEMPT_OUTCOME_CANCELLED) {
    finished = v1::Finished();
    finished.set_outcome(v1::ATTEMPT_OUTCOME_CANCELLED);
  }
  if (stop_reason() == StopReason::kSupersede) return;
  if (finished.outcome() == v1::ATTEMPT_OUTCOME_FAILED) Note(finished.error());
  v1::Event event;
  *event.mutable_finished() = std::move(finished);
  while (true) {
    const absl::Status status = Spooled(event);
    if (status.ok()) return;
    spdlog::error("attempt {}: cannot record how it ended: {}; trying again",
                  assignment_.attempt_id(), std::string(status.message()));
    // A full disk: until there is room the coordinator must not think that the slot is free.
    // Whoever ends this daemon or this attempt ends the wait too; the lease does the rest.
    if (WaitForStop(kFullDiskPause)) return;
  }
}

void Attempt::Note(const std::string& text) {
  spdlog::warn("attempt {} ({}): {}", assignment_.attempt_id(), assignment_.label(), text);
  log_.Append(absl::StrCat("pelab-worker: ", text, "\n"));
  context_->notify();
}

}  // namespace pelab::agent
