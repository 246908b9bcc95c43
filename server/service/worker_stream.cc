#include "server/service/worker_stream.h"

#include <google/protobuf/arena.h>

#include <cstddef>
#include <utility>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/rpc/status.h"
#include "server/limits.h"

namespace pelab::service {
namespace {

// A message whose parts lie in the same piece of memory, as far as they fit. One thread reads the
// message and another one frees its events, which is slow if each part was allocated by itself.
class MessageInPlace {
 public:
  static std::shared_ptr<v1::WorkerMessage> Make() {
    const auto whole = std::make_shared_for_overwrite<MessageInPlace>();  // leaves block_ as it is
    return {whole, whole->message_};
  }
  MessageInPlace() = default;
  MessageInPlace(const MessageInPlace&) = delete;
  MessageInPlace& operator=(const MessageInPlace&) = delete;

 private:
  static constexpr std::size_t kBytes = 1536;  // a batch of one event has less

  google::protobuf::ArenaOptions Options() {
    google::protobuf::ArenaOptions options;
    options.initial_block = block_;
    options.initial_block_size = kBytes;
    return options;
  }

  alignas(std::max_align_t) char block_[kBytes];
  google::protobuf::Arena arena_{Options()};
  v1::WorkerMessage* const message_ =
      google::protobuf::Arena::CreateMessage<v1::WorkerMessage>(&arena_);
};

}  // namespace

std::shared_ptr<WorkerStream> WorkerStream::Begin(FleetContext& context, access::OpenCalls& calls,
                                                  const grpc::ServerContextBase& call,
                                                  std::string principal) {
  std::shared_ptr<WorkerStream> stream(
      new WorkerStream(context, calls, call, std::move(principal)));
  stream->self_ = stream;
  stream->incoming_ = MessageInPlace::Make();
  stream->StartRead(stream->incoming_.get());
  return stream;
}

void WorkerStream::Send(v1::CoordinatorMessage message) {
  MutexLock lock(&mutex_);
  if (closing_) return;
  queued_bytes_ += message.ByteSizeLong() + sizeof(message);
  if (queued_bytes_ > limits::kOutgoingBytes) return GiveUpReader();
  if (message.has_acks() && !queue_.empty() && queue_.back().has_acks()) {
    queue_.back().mutable_acks()->MergeFrom(message.acks());
    return;
  }
  queue_.push_back(std::move(message));
  if (!writing_) SendNext();
}

// Gives up on a worker that does not read. The stream cannot be finished before the worker reads.
// Until then the worker is treated as gone: nothing is queued for it, nothing is read from it, and
// its leases run out.
void WorkerStream::GiveUpReader() {
  spdlog::warn("a worker does not read what it is sent: its session is given up");
  closing_ = true;
  close_status_ = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                               "the worker does not read what it is sent: connect again");
  queue_.clear();
  Ended();
}

void WorkerStream::SendNext() {
  outgoing_ = std::move(queue_.front());
  queue_.pop_front();
  if (queue_.empty()) queued_bytes_ = 0;
  writing_ = true;
  StartWrite(&outgoing_);
}

void WorkerStream::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok && !closing_) {
    closing_ = true;
    close_status_ = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the worker is gone");
  }
  if (ok && !queue_.empty()) return SendNext();
  if (closing_ && !finished_) {
    finished_ = true;
    Finish(close_status_);
  }
}

void WorkerStream::Close(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (closing_) return;
  closing_ = true;
  close_status_ = rpc::ToGrpc(status);
  if (writing_) return;
  finished_ = true;
  Finish(close_status_);
}

void WorkerStream::OnCancel() { Close(absl::CancelledError("the worker is gone")); }

void WorkerStream::OnDone() {
  open_.reset();
  const std::shared_ptr<WorkerStream> self = std::move(self_);
  // gRPC calls OnDone after all other reactions, on any thread. Taking the mutex makes their
  // effects visible to the thread that deletes this object, in a way that ThreadSanitizer can
  // follow.
  { const MutexLock after_the_others(&mutex_); }
  Ended();
}

void WorkerStream::OnReadDone(bool ok) {
  if (!ok) return Close(absl::OkStatus());
  if (Handle(std::exchange(incoming_, nullptr))) ReadOn();
}

void WorkerStream::ReadOn() {
  // Under the mutex: after Finish, gRPC may be done with this object at any moment.
  MutexLock lock(&mutex_);
  if (closing_) return;
  incoming_ = MessageInPlace::Make();
  StartRead(incoming_.get());
}

}  // namespace pelab::service
