// One worker's session as the coordinator sees it, apart from the wire: it validates what comes up,
// queues it for the one writer, and sends down what was stored, what is assigned and what has to
// stop. Never blocks: where the writer's queue is full nothing further is read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pelab/v1/fleet.pb.h"
#include "server/sched/scheduler.h"
#include "server/store/journal.h"

namespace pelab::service {

// What all sessions share. Outlives them.
struct FleetContext {
  const Clock& clock;
  sched::Executor& executor;
  sched::Scheduler& scheduler;
  store::Journal& journal;
  absl::Duration heartbeat;
  absl::Duration lease;
  std::function<double()> random_unit;
};

// The way up (Handle, Ended) is used by one thread at a time; what goes down may come from any.
class WorkerSession : public sched::WorkerLink, public std::enable_shared_from_this<WorkerSession> {
 public:
  void SendAssignment(const store::Assignment& assignment) override;
  void SendPack(const std::vector<store::Assignment>& assignments) override;
  void SendStop(std::int64_t attempt_id, std::uint64_t token, sched::StopReason reason) override;
  void SendDrain(const std::string& drain) override;

 protected:
  explicit WorkerSession(FleetContext& context) : context_(context) {}

  // What the wire does. Thread-safe, without blocking; after Close nothing is sent.
  virtual void Send(v1::CoordinatorMessage message) = 0;
  // Handle had answered that the next message is not to be read yet: it is now.
  virtual void ReadOn() = 0;

  // Answers whether the next message is to be read now.
  bool Handle(v1::WorkerMessage& message);
  // The wire is done with; nothing is handled any more. May be said again.
  void Ended();

 private:
  // Each answers whether the next message is to be read now.
  bool OnHello(const v1::Hello& hello);
  bool OnEvents(const v1::EventBatch& batch);
  bool OnLog(v1::LogChunk& log);
  void OnHeartbeat(const v1::Heartbeat& heartbeat);
  struct Sent {
    std::int64_t attempt_id = 0;
    std::uint64_t sequence = 0;
  };
  void Store();
  void OnStored(const std::vector<Sent>& sent,
                absl::StatusOr<std::vector<store::ApplyResult>> results);
  void GiveUp(const Sent& event, const absl::Status& why);

  FleetContext& context_;
  bool gone_ = false;  // of the executor: the wire is done with
  // Of the reading side.
  std::string worker_id_;
  std::vector<store::Write> waiting_;  // events that the full queue has not taken yet
};

}  // namespace pelab::service
