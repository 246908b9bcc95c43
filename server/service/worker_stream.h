// One worker's session: a reactor on gRPC's callback API. It validates what comes up, queues it for
// the one writer, and sends down what was stored, what is assigned and what has to stop. Reactions
// never block: where the writer's queue is full the stream is not read any further.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "pelab/v1/fleet.grpc.pb.h"
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

class WorkerStream final
    : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>,
      public sched::WorkerLink,
      public std::enable_shared_from_this<WorkerStream> {
 public:
  // Starts to read. Keeps itself alive until gRPC is done with it; later sends do nothing.
  static std::shared_ptr<WorkerStream> Begin(FleetContext& context);

  void SendAssignment(const store::Assignment& assignment) override;
  void SendStop(std::int64_t attempt_id, std::uint64_t token, sched::StopReason reason) override;
  void Close(const absl::Status& status) override;

  // gRPC's reactions.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  explicit WorkerStream(FleetContext& context) : context_(context) {}

  void Send(v1::CoordinatorMessage message);
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Each answers whether the next message is to be read now.
  bool Handle();
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
  std::shared_ptr<WorkerStream> self_;
  bool gone_ = false;  // of the executor: gRPC is done with the stream

  // Of the reading side, which one reaction at a time uses.
  v1::WorkerMessage incoming_;
  std::string worker_id_;
  std::vector<store::Write> waiting_;  // events that the full queue has not taken yet

  Mutex mutex_;
  v1::CoordinatorMessage outgoing_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::CoordinatorMessage> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status close_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::service
