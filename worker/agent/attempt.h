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
#include "worker/agent/attempt_spans.h"
#include "worker/agent/checkpoint_transfer.h"
#include "worker/agent/energy.h"
#include "worker/agent/file_cache.h"
#include "worker/agent/preloaded_trainer.h"
#include "worker/agent/reservations.h"
#include "worker/agent/spool.h"
#include "worker/agent/trainer_trace.h"
#include "worker/agent/work_dir.h"

namespace pelab::agent {

// How often a trainer keeps a checkpoint: every `epochs` epochs, or, if `epochs` is 0, at the end
// of the first epoch that ends at least `time` after the last checkpoint.
struct CheckpointCadence {
  int epochs = 0;
  absl::Duration time = absl::Seconds(30);
};

// The upper bound for the time between two tries. The coordinator's Welcome sets it while attempts
// run: the session writes it and all attempts read it. Thread-safe. Kept to the millisecond.
class RetryCap {
 public:
  explicit RetryCap(absl::Duration cap) : ms_(absl::ToInt64Milliseconds(cap)) {}
  RetryCap(const RetryCap& other) : ms_(other.ms_.load()) {}
  void Set(absl::Duration cap) { ms_ = absl::ToInt64Milliseconds(cap); }
  absl::Duration Get() const { return absl::Milliseconds(ms_.load()); }

 private:
  std::atomic<std::int64_t> ms_;
};

// The settings and services that all attempts of a daemon share. Must outlive the attempts.
struct AttemptContext {
  const WorkDir* work_dir = nullptr;
  SpoolQuota* quota = nullptr;
  Reservations* reservations = nullptr;
  ArtifactTransfer* artifacts = nullptr;
  FileCache* files = nullptr;
  bool own_encodings = true;  // trainers may run encodings that come from files
  const Clock* clock = nullptr;
  trace::SpanFile* spans = nullptr;       // null: no spans are recorded
  EnergyMeter* energy = nullptr;          // null: the energy of GPUs is not measured
  std::string trainer;                    // absolute path
  PreloadedTrainer* preloaded = nullptr;  // for trainers with `threads`; null: none
  // variables that the trainer asks for
  std::vector<std::pair<std::string, std::string>> environment;
  // for a job's first attempt; later ones get the number from their assignment
  int threads = 1;
  std::optional<int> micro_batch;  // likewise; 0: the whole batch; nullopt: the trainer chooses
  int parent_fd = -1;              // the read end of a pipe whose write end only this daemon holds
  // Tells the session that there is something to send, or that an attempt has ended. Thread-safe.
  std::function<void()> notify;
  RetryCap retry_cap{absl::Seconds(5)};  // the longest pause between tries to send or fetch a file
  CheckpointCadence checkpoint_every;
  // How long a trainer may be silent. nullopt: the trainer's own pace decides (StallWatch);
  // infinite: no limit.
  std::optional<absl::Duration> attempt_timeout;
  // The time between two uploads of a job's newest checkpoint. Zero: never, not even at the end.
  absl::Duration checkpoint_upload = absl::Minutes(5);
  // How long the last upload may take when the daemon ends.
  absl::Duration farewell_upload = absl::Seconds(8);
};

// Everything that belongs to one attempt, from its spool to its outcome. A TrainerRun
// (trainer_run.h) does the training and reports it here. The attempt itself does the work after the
// training. If there is nothing to train, it does all the work. Thread-safe. The destructor waits
// for the attempt's thread.
class Attempt {
 public:
  Attempt(const AttemptContext* context, v1::Assignment assignment, std::unique_ptr<Spool> spool);
  ~Attempt();

  // Call one of the next three functions, once, to begin. Call none if the spool has the end
  // already.

  // Training is done and its weights are on this host: uploads them and finishes.
  void StartUpload(event::DoneLine done);
  // An earlier daemon left the attempt unfinished: records it as preempted.
  void FinishInterrupted();
  // A run has taken the attempt, on this slot (-1: there is no such slot), and keeps it until
  // Leave.
  void Enter(int slot);

  // Sets the reason why the trainer, or the work after it, has to end within `grace`. Returns at
  // once. It does not end the trainer: the run does that.
  void Stop(StopReason reason, absl::Duration grace);
  StopReason stop_reason() const { return stop_reason_.load(std::memory_order_acquire); }
  absl::Duration grace();  // the shortest grace that Stop was given

  const v1::Assignment& assignment() const { return assignment_; }
  Spool& spool() { return *spool_; }
  AttemptLog& log() { return log_; }
  // For its trainer's environment; empty: it belongs to no trace.
  const std::string& traceparent() const { return traceparent_; }
  // Nothing is left to do here, and no trainer uses the attempt's directories.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // The slot that its trainer uses; -1 after the trainer has ended.
  int slot() const { return slot_.load(std::memory_order_acquire); }
  // How long its last epoch took; zero before its first one has ended.
  absl::Duration last_epoch() const { return absl::Seconds(last_epoch_seconds_.load()); }

  // The run's thread calls the next six functions, one at a time.

  // Its slot is free for it. `gpu` is the UUID of the slot's GPU, whose energy it uses from now on;
  // empty: it has none.
  void SlotTaken(const std::string& gpu);
  // Fetches the files that the job's spec names and that this host lacks. An error is final, unless
  // the attempt was stopped.
  absl::Status FetchFiles();
  // Fetches the file that the trainer starts from. For training: a newer checkpoint, if the
  // assignment names one; always OK, even if the checkpoint cannot be fetched. For an analysis: the
  // kept weights; an error is final, unless the attempt was stopped.
  absl::Status Fetch(const std::string& job_dir, absl::Duration patience);
  // The trainer has started. `any_packing`: on its device, a job computed alone (packing 1) gives
  // the same numbers as in a batch of any size.
  void TrainerStarted(const std::string& job_dir, bool any_packing);
  // Takes a line of the trainer about this job. Lines after the attempt was settled are ignored.
  absl::Status OnLine(event::TrainerLine line);
  void OnStderr(absl::string_view bytes);

  // The functions below settle how the attempt ended. Only the first call counts. The work that
  // follows (a last checkpoint, the weights, the Finished event) runs on a thread of its own.

  // Derives the outcome from the trainer's exit. `exit` may also be the exit that the trainer would
  // have had with this job alone. Never call it while OnLine runs.
  void SettleByTrainer(const ExitStatus& exit, const absl::Status& output);
  void SettleAs(v1::Finished finished);
  // The attempt was stopped, and its trainer, if there is one, will say nothing more about it.
  void SettleStopped();
  bool settled() const { return settled_.load(std::memory_order_acquire); }
  // Waits until the work that follows the outcome is done.
  void AwaitEnd();
  // The run is over: the slot and the directories are free.
  void Leave();

 private:
  // Begins a step of the run: the work that follows the outcome waits until EndStep. False if the
  // attempt is already settled.
  bool BeginStep();
  void EndStep();
  absl::Status Take(event::TrainerLine line);
  void WrapUp(v1::Finished finished);
  CheckpointPlace PlaceOf(const std::string& job_dir);
  // Sends the newest checkpoint to the coordinator, because the job goes on elsewhere.
  void HandOver(CheckpointUploader& uploader);
  // Fetches the kept weights into the attempt's directory.
  absl::Status FetchWeights();
  // Fetches a file; tries again while the coordinator is away or busy. An error is final, unless
  // the attempt was stopped.
  absl::Status Get(const ArtifactFile& file);
  // False if the daemon ends before the upload does; the next daemon continues it. `warning` says
  // why the weights could not be kept with the coordinator.
  bool Upload(const event::DoneLine& done, std::string* warning);
  void RunUpload(const event::DoneLine& done);
  std::string GiveUpUpload(const event::DoneLine& done, const absl::Status& status);
  void Finish(v1::Finished finished);
  // Ends the measurement of its energy. nullopt: it was not measured, or has ended already.
  std::optional<double> StopMeter();
  absl::Status Spooled(v1::Event event);
  absl::Status AppendWhenThereIsRoom(const v1::Event& event);
  void Note(const std::string& text);
  bool TrainerHasStarted();
  double SecondsOfTrainer();
  bool WaitForStop(absl::Duration timeout);

  const AttemptContext* const context_;
  const v1::Assignment assignment_;
  const std::unique_ptr<Spool> spool_;
  AttemptLog log_;
  std::atomic<bool> ended_{true};
  std::atomic<int> slot_{-1};
  std::atomic<double> last_epoch_seconds_{0};
  std::atomic<StopReason> stop_reason_{StopReason::kNone};
  std::atomic<bool> settled_{false};
  // Used by the run's steps, then by the work that follows them.
  TrainerTrace trace_;
  AttemptSpans spans_;
  bool any_packing_ = false;
  std::optional<CheckpointUploader> uploader_;
  Mutex mutex_;
  bool in_step_ ABSL_GUARDED_BY(mutex_) = false;
  bool wrapped_up_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration trainer_started_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  absl::Duration grace_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  absl::Time hand_over_until_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  const std::string traceparent_;
  const LogIds log_ids_;
  std::thread thread_;
};

// The path to which a job's kept weights are fetched for its attempt.
std::string WeightsPath(const AttemptContext& context, const v1::Assignment& assignment);

}  // namespace pelab::agent
