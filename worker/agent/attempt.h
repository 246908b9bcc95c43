// One attempt on this host: its trainer, from assignment to the Finished event in its spool.
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
#include "worker/agent/artifact_transfer.h"
#include "worker/agent/attempt_log.h"
#include "worker/agent/checkpoint_transfer.h"
#include "worker/agent/devices.h"
#include "worker/agent/reservations.h"
#include "worker/agent/spool.h"
#include "worker/agent/trainer_process.h"
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
  // Between two uploads of a job's newest checkpoint; zero: never, also not at the end.
  absl::Duration checkpoint_upload = absl::Minutes(5);
  // How long one last upload may take when the daemon ends.
  absl::Duration farewell_upload = absl::Seconds(8);
};

// Thread-safe. Its thread runs from one of the Start functions until ended(); the destructor waits
// for it. At most one of the three functions that begin is called, once.
class Attempt {
 public:
  Attempt(const AttemptContext* context, v1::Assignment assignment, std::unique_ptr<Spool> spool);
  ~Attempt();

  // Trains, or runs analyses on kept weights, as the assignment says. nullopt: this worker has no such slot, which fails the attempt.
  void StartTraining(std::optional<SlotPlan> plan);
  // Training is done and its weights are here: uploads them and finishes.
  void StartUpload(DoneLine done);
  // It was left unfinished by an earlier daemon.
  void FinishInterrupted();

  // Ends the trainer with SIGTERM, then SIGKILL after `grace`. Returns at once.
  void Stop(StopReason reason, absl::Duration grace);

  const v1::Assignment& assignment() const { return assignment_; }
  Spool& spool() { return *spool_; }
  AttemptLog& log() { return log_; }
  // It has no thread, or that has nothing left to do.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // The slot that its trainer uses; -1 once that has ended.
  int slot() const { return slot_.load(std::memory_order_acquire); }

 private:
  void RunTraining(const std::optional<SlotPlan>& plan);
  absl::StatusOr<std::unique_ptr<TrainerProcess>> StartTrainer(const SlotPlan& plan,
                                                               const std::string& job_dir);
  v1::Finished TrainOn(const SlotPlan& plan, const std::string& job_dir,
                       std::optional<DoneLine>* done);
  v1::Finished RunTrainer(TrainerProcess& process, const std::string& job_dir,
                          std::optional<DoneLine>* done);
  v1::Finished StoppedBeforeItRan() const;
  CheckpointPlace PlaceOf(const std::string& job_dir);
  absl::Status OnLine(absl::string_view line, const std::string& job_dir, TrainerTrace* trace);
  // The job goes on elsewhere: brings its newest checkpoint to the coordinator.
  void HandOver(CheckpointUploader& uploader);
  // Brings the kept weights into the attempt's directory; an error is for good, or the attempt is
  // stopped.
  absl::Status FetchWeights();
  // False: the daemon ends before the upload has; the next one goes on with it.
  bool Upload(const DoneLine& done);
  void RunUpload(const DoneLine& done);
  void GiveUpUpload(const DoneLine& done, const absl::Status& status);
  void Finish(v1::Finished finished);
  absl::Status Spooled(v1::Event event);
  absl::Status AppendWhenThereIsRoom(const v1::Event& event);
  void Note(const std::string& text);
  void End();
  StopReason stop_reason() const { return stop_reason_.load(std::memory_order_acquire); }
  bool WaitForStop(absl::Duration timeout);

  const AttemptContext* const context_;
  const v1::Assignment assignment_;
  const std::unique_ptr<Spool> spool_;
  AttemptLog log_;
  std::atomic<bool> ended_{true};
  std::atomic<int> slot_{-1};
  std::atomic<StopReason> stop_reason_{StopReason::kNone};
  Mutex mutex_;
  TrainerProcess* process_ ABSL_GUARDED_BY(mutex_) = nullptr;
  absl::Duration grace_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  absl::Time hand_over_until_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::thread thread_;
};

}  // namespace pelab::agent
