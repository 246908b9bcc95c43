// A worker daemon without trainers, over real gRPC. It accepts assignments and reports as many
// epochs as their specs ask for, at the given pace. It measures the time from when an event was due
// to its acknowledgement.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "pelab/v1/fleet.grpc.pb.h"
#include "tests/bench/load/latencies.h"

namespace pelab::load {

// Nanoseconds of the monotonic clock.
std::int64_t Now();
inline constexpr std::int64_t kNever = INT64_MAX;
// An epoch as a trainer of the jobs of Document (scenario.h) reports it.
void FillEpoch(int epoch, v1::Epoch& to);

// State shared by all workers of a fleet. Must outlive them.
struct WorkerHooks {
  // The time between two epochs of a job with this many epochs; zero: the whole job is reported at
  // once.
  std::function<absl::Duration(int epochs)> pace;
  // Called when an assignment arrives. Must not block. May be unset.
  std::function<void(const v1::Assignment&, std::int64_t now)> on_assignment;
  // Asks for a Tick of this worker at this time. Thread-safe.
  std::function<void(std::size_t index, std::int64_t when)> wake;
  std::atomic<std::int64_t> welcomed{0};
  std::atomic<std::int64_t> assigned{0};
  std::atomic<std::int64_t> epochs_sent{0};
  std::atomic<std::int64_t> epochs_acknowledged{0};
  std::atomic<std::int64_t> jobs_acknowledged{0};  // jobs whose end is stored
  std::atomic<std::int64_t> superseded{0};
  std::atomic<std::int64_t> broken{0};  // streams that ended before they were told to
};

class FakeWorker final : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  // With `gpus`, each slot has a GPU, and heartbeats say how it is.
  FakeWorker(std::size_t index, std::string id, int slots, bool gpus,
             const std::shared_ptr<grpc::Channel>& channel, WorkerHooks& hooks);

  void Start();
  // Sends what is due, and returns when it wants the next call.
  std::int64_t Tick(std::int64_t now);
  // Breaks the stream; WaitUntilGone returns afterwards.
  void Leave();
  void WaitUntilGone() { gone_.Wait(); }
  // Moves the latencies since the last call to `to`.
  void TakeLatencies(Latencies& to);
  // The same for heartbeats: from when one was due to its answer.
  void TakeBeats(Latencies& to);
  // Adds for how long each heartbeat and event waits that has no answer yet.
  void AddUnanswered(std::int64_t now, Latencies& to);

  // Callbacks of gRPC.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  struct Attempt {
    std::uint64_t token = 0;
    int slot = 0;
    int epochs = 0;
    int next_epoch = 0;
    std::int64_t interval = 0;
    std::int64_t due = 0;
    std::uint64_t sequence = 0;  // of the last event
    std::uint64_t acknowledged = 0;
    std::deque<std::int64_t> waiting;  // due times of the events after `acknowledged`
    bool finished = false;
  };

  void Take(const v1::Assignment& assignment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(const v1::Ack& ack) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(const v1::HeartbeatAnswer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Report(std::int64_t id, Attempt& attempt, std::int64_t now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::Event* Add(std::int64_t id, Attempt& attempt, std::int64_t due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Measure(v1::Heartbeat& beat) const;
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t index_;
  const std::string id_;
  const int slots_;
  const bool gpus_;
  WorkerHooks& hooks_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::Fleet::Stub> stub_;
  v1::CoordinatorMessage incoming_;
  Notification gone_;

  Mutex mutex_;
  v1::WorkerMessage outgoing_ ABSL_GUARDED_BY(mutex_);
  v1::EventBatch outbox_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
  std::int64_t heartbeat_ ABSL_GUARDED_BY(mutex_) = kNever;  // interval; known after Welcome
  std::int64_t next_beat_ ABSL_GUARDED_BY(mutex_) = kNever;
  bool beat_due_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint64_t beats_ ABSL_GUARDED_BY(mutex_) = 0;  // that were due so far
  std::uint64_t answered_beats_ ABSL_GUARDED_BY(mutex_) = 0;
  // Due times of the heartbeats after `answered_beats_`.
  std::deque<std::int64_t> waiting_beats_ ABSL_GUARDED_BY(mutex_);
  std::map<std::int64_t, Attempt> attempts_ ABSL_GUARDED_BY(mutex_);
  Latencies latencies_ ABSL_GUARDED_BY(mutex_);
  Latencies beat_latencies_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::load
