// Moves a job's checkpoints between this host and the coordinator. The newest one is uploaded at
// intervals; a worker whose own checkpoint is older downloads it.
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

// The checkpoint files of one attempt. The functions must be thread-safe and must outlive every
// call that uses this struct.
struct CheckpointPlace {
  ArtifactTransfer* artifacts = nullptr;
  const v1::Assignment* assignment = nullptr;
  std::string job_dir;      // where the trainer keeps its checkpoint
  std::string attempt_dir;  // for files in transfer
  std::function<bool()> stopped;
  std::function<void(absl::Duration)> pause;          // ends early when stopped
  std::function<void(const std::string& text)> note;  // for people
  absl::Duration retry_cap = absl::Seconds(5);
};

// Fetches the checkpoint that the assignment names into the job's directory, if it is newer than
// the local one and the job may start from it. Keeps trying for at most `patience` while the
// coordinator is away. After any failure the directory is as it was, and the trainer starts from
// its contents.
void FetchCheckpoint(const CheckpointPlace& place, absl::Duration patience);

// Uploads the newest checkpoint of a running attempt every `interval`, on a thread of its own, and
// spools an event for each checkpoint that the coordinator has stored. Thread-safe.
class CheckpointUploader {
 public:
  // Puts the event into the attempt's spool.
  using Spool = std::function<absl::Status(v1::Event event)>;

  CheckpointUploader(CheckpointPlace place, absl::Duration interval, Spool spool);
  ~CheckpointUploader();  // gives up the call under way and waits for it to return

  // The trainer has kept a checkpoint whose next epoch is `epoch`, and all epochs before it are
  // spooled.
  void Offer(int epoch);

  // The trainer has ended: stops the thread. If a checkpoint is newer than the last one uploaded,
  // uploads it now, until `until` at the latest. With `persist` it tries again while the
  // coordinator is away.
  void Finish(absl::Time until, bool persist);

 private:
  void Run();
  absl::Status UploadNewest(absl::Time until, const std::function<bool()>& give_up);
  bool StopThread();
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return offered_ > sent_; }

  const CheckpointPlace place_;
  const absl::Duration interval_;
  const Spool spool_;
  bool refused_ = false;  // a refusal was reported in the log; it is reported once
  Mutex mutex_;
  int offered_ ABSL_GUARDED_BY(mutex_) = 0;
  int sent_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::agent
