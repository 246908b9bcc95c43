// A job's checkpoints between this host and the coordinator: the newest goes up now and then, and
// comes down to a worker that has none as new.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "pelab/v1/fleet.pb.h"
#include "worker/agent/artifact_transfer.h"

namespace pelab::agent {

// Of one attempt. The functions outlive what is called with it and are thread-safe.
struct CheckpointPlace {
  ArtifactTransfer* artifacts = nullptr;
  const v1::Assignment* assignment = nullptr;
  std::string job_dir;      // where the trainer keeps its checkpoint
  std::string attempt_dir;  // for what is under way
  std::function<bool()> stopped;
  std::function<void(absl::Duration)> pause;          // ends early when stopped
  std::function<void(const std::string& text)> note;  // for people
  absl::Duration retry_cap = absl::Seconds(5);
};

// Brings the coordinator's checkpoint into the job's directory where the assignment names one that
// is newer than what is there and may be used. Tries for at most `patience` while the coordinator
// is away; whatever goes wrong, the directory is left as it was, and the trainer starts with that.
void FetchCheckpoint(const CheckpointPlace& place, absl::Duration patience);

// Sends the newest checkpoint of a running attempt every `interval`, on a thread of its own, and
// spools an event for each that the coordinator has. Thread-safe.
class CheckpointUploader {
 public:
  // Puts the event into the attempt's spool.
  using Spool = std::function<absl::Status(v1::Event event)>;

  CheckpointUploader(CheckpointPlace place, absl::Duration interval, Spool spool);
  ~CheckpointUploader();  // waits for the call under way, which is given up

  // The trainer has kept one whose next epoch is `epoch`, and all epochs before that are spooled.
  void Offer(int epoch);

  // The trainer has ended: no more on the thread. What is newer than the last one sent is sent now,
  // until `until`; with `persist` it is tried again where the coordinator is away.
  void Finish(absl::Time until, bool persist);

 private:
  void Run();
  absl::Status UploadNewest(absl::Time until, const std::function<bool()>& give_up);
  bool StopThread();
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return offered_ > sent_; }

  const CheckpointPlace place_;
  const absl::Duration interval_;
  const Spool spool_;
  bool refused_ = false;  // and said so
  Mutex mutex_;
  int offered_ ABSL_GUARDED_BY(mutex_) = 0;
  int sent_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::agent
