// One worker's session, apart from the transport. It validates the worker's messages and queues
// them for the writer. It sends acknowledgements, assignments and stops to the worker. It never
// blocks. It reads no further messages while events do not fit into the writer's queue, while many
// bytes of this worker are not stored yet, or while a heartbeat waits for the scheduler. So a flood
// by one worker takes turns with the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "pelab/v1/fleet.pb.h"
#include "server/sched/scheduler.h"
#include "server/store/journal.h"

namespace pelab::service {

// Shared by all sessions. It must outlive them.
struct FleetContext {
  const Clock& clock;
  sched::Executor& executor;
  sched::Scheduler& scheduler;
  store::Journal& journal;
  absl::Duration heartbeat;
  absl::Duration lease;
  std::function<double()> random_unit;
};

// Calls of Handle do not overlap, except that one may still be returning after it has called
// ReadOn. Ended and the Send… methods may be called by any thread, also while Handle runs.
class WorkerSession : public sched::WorkerLink, public std::enable_shared_from_this<WorkerSession> {
 public:
  void SendAssignment(const store::Assignment& assignment) override;
  void SendPack(const std::vector<store::Assignment>& assignments) override;
  void SendStop(std::int64_t attempt_id, std::uint64_t token, sched::StopReason reason) override;
  void SendDrain(v1::Drain::Mode drain) override;

 protected:
  // `principal` says hello as the worker; empty: the coordinator has no principals.
  explicit WorkerSession(FleetContext& context, std::string principal = "")
      : context_(context), principal_(std::move(principal)) {}

  // Sends a message over the transport. Thread-safe; must not block. Does nothing after Close.
  virtual void Send(v1::CoordinatorMessage message) = 0;
  // Reads the next message. Called once for each Handle that returns false, on any thread, perhaps
  // before that Handle has returned.
  virtual void ReadOn() = 0;

  // Handles a message from the worker. Returns whether to read the next message now; if false,
  // ReadOn is called later unless the session ends. Events keep the message until they are stored.
  bool Handle(const std::shared_ptr<v1::WorkerMessage>& message);
  // The transport has ended; the session handles nothing any more. May be called more than once.
  void Ended();

 private:
  // These return whether to read the next message now, as Handle does.
  bool OnGoodbye(const v1::Goodbye& goodbye);
  bool OnHello(const v1::Hello& hello);
  bool OnEvents(const std::shared_ptr<const v1::EventBatch>& batch);
  bool OnLog(v1::LogChunk& log);
  bool OnHeartbeat(const v1::Heartbeat& heartbeat);
  void DrainIfUnfit(const std::string& why);
  std::vector<store::Write> WritesOf(const std::shared_ptr<const v1::EventBatch>& batch) const;
  void Store(const std::shared_ptr<const v1::EventBatch>& batch);
  void Queued(std::size_t bytes);
  bool MayReadOn();
  void Unqueued(std::size_t bytes);
  void OnStored(const v1::EventBatch& batch,
                absl::StatusOr<std::vector<store::ApplyResult>> results);
  void GiveUp(const v1::Event& event, const absl::Status& why);

  FleetContext& context_;
  const std::string principal_;
  bool gone_ = false;  // on the executor's thread only: the transport has ended
  // Set once, by the hello, on the reading thread. Work that is posted after the hello may read it
  // on any thread. Writes share it: they may wait in the session itself, so they must not keep the
  // session alive.
  std::shared_ptr<const std::string> worker_id_ = std::make_shared<const std::string>();
  bool unfit_ = false;  // for the reading thread only: the worker says so, and is drained

  Mutex unstored_mutex_;
  // Bytes of this worker's events and logs that the writer has not stored yet.
  std::size_t unstored_bytes_ ABSL_GUARDED_BY(unstored_mutex_) = 0;
  // The next message is read when less is unstored.
  bool held_back_ ABSL_GUARDED_BY(unstored_mutex_) = false;
};

}  // namespace pelab::service
