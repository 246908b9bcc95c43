// A worker session over gRPC's callback API: a reactor that moves messages between the stream and
// the WorkerSession. Its reactions never block.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "pelab/v1/fleet.grpc.pb.h"
#include "server/access/open_calls.h"
#include "server/service/worker_session.h"

namespace pelab::service {

class WorkerStream final
    : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>,
      public WorkerSession {
 public:
  // Starts reading. The object keeps itself alive until gRPC has finished with it; after that,
  // sends do nothing. The stream ends when `principal` may not have it any more.
  static std::shared_ptr<WorkerStream> Begin(FleetContext& context, access::OpenCalls& calls,
                                             const grpc::ServerContextBase& call,
                                             std::string principal);

  void Close(const absl::Status& status) override;

  // Reactions, called by gRPC.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  WorkerStream(FleetContext& context, access::OpenCalls& calls, const grpc::ServerContextBase& call,
               std::string principal)
      : WorkerSession(context, std::move(principal)), open_(std::in_place, calls, call) {}

  void Send(v1::CoordinatorMessage message) override;
  void ReadOn() override;
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUpReader() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::shared_ptr<WorkerStream> self_;
  std::optional<access::OpenCalls::Stream> open_;  // until OnDone, after which there is no context
  std::shared_ptr<v1::WorkerMessage> incoming_;    // used by one reaction at a time

  Mutex mutex_;
  v1::CoordinatorMessage outgoing_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::CoordinatorMessage> queue_ ABSL_GUARDED_BY(mutex_);
  // Upper bound of the bytes in queue_: reset only when it is empty.
  std::size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status close_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::service
