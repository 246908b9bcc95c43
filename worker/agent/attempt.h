// One attempt on this host, from its assignment to the Finished event in its spool.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/process.h"
#include "worker/agent/artifact_transfer.h"
#include "worker/agent/attempt_log.h"
#include "worker/agent/checkpoint_transfer.h"
#include "worker/agent/reservations.h"
#include "worker/agent/spool.h"
#include "worker/agent/trainer_trace.h"
#include "worker/agent/work_dir.h"

namespace pelab::agent {

// How often a trainer keeps a checkpoint: after so many epochs, or, where that is 0, at the first
// epoch's end after so much time.
struct CheckpointCadence {
  int epochs = 0;
  absl::Duration time = absl::Seconds(30);
};

// What the coordinator says at a welcome while attempts run: set by the session, read by all of them.
// Thread-safe; to the millisecond.
class RetryCap {
 public:
  explicit RetryCap(absl::Duration cap) : ms_(absl::ToInt64Milliseconds(cap)) {}
  RetryCap(const RetryCap& other) : ms_(other.ms_.load()) {}
  void Set(absl::Duration cap) { ms_ = absl::ToInt64Milliseconds(cap); }
  absl::Duration Get() const { return absl::Milliseconds(ms_.load()); }

 private:
  std::atomic<std::int64_t> ms_;
};

// What the attempts of a daemon share; outlives them.
struct AttemptContext {
  const WorkDir* work_dir = nullptr;
  SpoolQuota* quota = nullptr;
  Reservations* reservations = nullptr;
  ArtifactTransfer* artifacts = nullptr;
  const Clock* clock = nullptr;
  std::string trainer;                                           // absolute path
  std::vector<std::pair<std::string, std::string>> environment;  // that the trainer asks for
  int threads = 1;                 // of a job's first attempt; later ones are told
  std::optional<int> micro_batch;  // likewise; 0: the whole batch; none: as the trainer chooses
  int parent_fd = -1;              // read end of a pipe that only this daemon holds open
  std::function<void()>
      notify;  // there is something to send, or the attempt has ended; from any thread
  RetryCap retry_cap{absl::Seconds(5)};  // between tries to send or fetch a file
  CheckpointCadence checkpoint_every;
  // How long a trainer may say nothing; nullopt: by its own pace (StallWatch); infinite: for ever.
  std::optional<absl::Duration> attempt_timeout;
  // Between two uploads of a job's newest checkpoint; zero: never, also not at the end.
  absl::Duration checkpoint_upload = absl::Minutes(5);
  // How long one last upload may take when the daemon ends.
  absl::Duration farewell_upload = absl::Seconds(8);
};

// What belongs to one attempt, from its spool to how it ended. A TrainerRun (trainer_run.h) does the
// training and tells it of that; what is left to do after that, or where there is nothing to train,
// it does itself. Thread-safe. The destructor waits for its thread.
class Attempt {
 public:
  Attempt(const AttemptContext* context, v1::Assignment assignment, std::unique_ptr<Spool> spool);
  ~Attempt();

  // One of the next three begins, once.
  // Training is done and its weights are here: uploads them and finishes.
  void StartUpload(DoneLine done);
  // It was left unfinished by an earlier daemon.
  void FinishInterrupted();
  // A run has it, on this slot (-1: there is no such slot), until it says Leave.
  void Enter(int slot);

  // Why its trainer has to end, or what it still does; within `grace`. Returns at once, and ends no
  // trainer: that is its run's.
  void Stop(StopReason reason, absl::Duration grace);
  StopReason stop_reason() const { return stop_reason_.load(std::memory_order_acquire); }
  absl::Duration grace();  // the shortest that it was given

  const v1::Assignment& assignment() const { return assignment_; }
  Spool& spool() { return *spool_; }
  AttemptLog& log() { return log_; }
  // Nothing is left to do here, and no trainer uses its directories.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // The slot that its trainer uses; -1 once that has ended.
  int slot() const { return slot_.load(std::memory_order_acquire); }

  // Of its run, whose thread calls them one at a time.
  // Brings here what the trainer is to begin with: a newer checkpoint, for which it is no failure if
  // it does not come, or kept weights, for which the error is for good, unless it is stopped.
  absl::Status Fetch(const std::string& job_dir, absl::Duration patience);
  // The trainer has started. `any_packing`: on its device a trainer that says packing 1 computes the
  // same in a batch of any number.
  void TrainerStarted(const std::string& job_dir, bool any_packing);
  // A line of the trainer about its job; one that comes after it was settled is left alone.
  absl::Status OnLine(TrainerLine line);
  void OnStderr(absl::string_view bytes);

  // How it ended, for good: the first call counts. What has to follow (a last checkpoint, the
  // weights, the Finished event) goes on on a thread of its own.
  // The trainer's end, or what it stands for; never while a line is at work.
  void SettleByTrainer(const ExitStatus& exit, const absl::Status& output);
  void SettleAs(v1::Finished finished);
  // It was stopped, and its trainer, if there is one, has nothing more to say about it.
  void SettleStopped();
  bool settled() const { return settled_.load(std::memory_order_acquire); }
  // Waits until what had to follow is done.
  void AwaitEnd();
  // The run is over: the slot and the directories are free.
  void Leave();

 private:
  // Keeps what follows its end from running beside a step of the run; false: it is settled.
  bool BeginStep();
  void EndStep();
  absl::Status Take(TrainerLine line);
  void WrapUp(v1::Finished finished);
  CheckpointPlace PlaceOf(const std::string& job_dir);
  // The job goes on elsewhere: brings its newest checkpoint to the coordinator.
  void HandOver(CheckpointUploader& uploader);
  // Brings the kept weights into the attempt's directory; an error is for good, or the attempt is
  // stopped.
  absl::Status FetchWeights();
  // False: the daemon ends before the upload has; the next one goes on with it. `warning` says where
  // the weights cannot be kept with the coordinator.
  bool Upload(const DoneLine& done, std::string* warning);
  void RunUpload(const DoneLine& done);
  std::string GiveUpUpload(const DoneLine& done, const absl::Status& status);
  void Finish(v1::Finished finished);
  absl::Status Spooled(v1::Event event);
  absl::Status AppendWhenThereIsRoom(const v1::Event& event);
  void Note(const std::string& text);
  double SecondsOfTrainer();
  bool WaitForStop(absl::Duration timeout);

  const AttemptContext* const context_;
  const v1::Assignment assignment_;
  const std::unique_ptr<Spool> spool_;
  AttemptLog log_;
  std::atomic<bool> ended_{true};
  std::atomic<int> slot_{-1};
  std::atomic<StopReason> stop_reason_{StopReason::kNone};
  std::atomic<bool> settled_{false};
  // Of the run's steps, then of what follows.
  TrainerTrace trace_;
  bool any_packing_ = false;
  std::optional<CheckpointUploader> uploader_;
  Mutex mutex_;
  bool in_step_ ABSL_GUARDED_BY(mutex_) = false;
  bool wrapped_up_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration trainer_started_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  absl::Duration grace_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  absl::Time hand_over_until_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::thread thread_;
};

// Where a job's kept weights are brought for its attempt.
std::string WeightsPath(const AttemptContext& context, const v1::Assignment& assignment);

}  // namespace pelab::agent
