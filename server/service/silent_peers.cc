#include "server/service/silent_peers.h"

#include <grpcpp/server_context.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace pelab::service {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

constexpr int kPagerPatience = 20;  // times as long for a log that somebody reads

}  // namespace

// One call. It is among the waiting ones only while its handler runs or its answer is sent, so its
// context exists then.
class SilentPeers::Call final : public grpc::experimental::Interceptor {
 public:
  Call(SilentPeers& peers, ServerRpcInfo& info, absl::Duration most)
      : peers_(peers),
        context_(*info.server_context()),
        uploads_(info.type() == ServerRpcInfo::Type::CLIENT_STREAMING),
        most_(most) {}
  ~Call() override { End(); }

  void Intercept(InterceptorBatchMethods* methods) override {
    // Cancelling calls this too, with the mutex held.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_CANCEL)) return;
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS) ||
        methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_SEND_MESSAGE)) {
      End();
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      const grpc::ByteBuffer* const message = methods->GetSerializedSendMessage();
      Begin(message == nullptr ? 0 : message->Length());
    }
    if (uploads_ &&
        methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      End();
      // Without a message, the client has sent everything.
      if (methods->GetRecvMessage() != nullptr) Begin(0);
    }
    methods->Proceed();
  }

  void Cancel() const { context_.TryCancel(); }
  std::size_t bytes() const { return bytes_; }

 private:
  void Begin(std::size_t bytes) {
    MutexLock lock(&peers_.mutex_);
    if (deadline_) return;
    deadline_ = peers_.clock_.Monotonic() + most_;
    bytes_ = bytes;
    peers_.bytes_ += bytes;
    peers_.waiting_.emplace(*deadline_, this);
    peers_.MakeRoom(*this);
  }
  void End() {
    MutexLock lock(&peers_.mutex_);
    if (!deadline_) return;
    peers_.waiting_.erase({*deadline_, this});
    peers_.bytes_ -= bytes_;
    deadline_.reset();
  }

  SilentPeers& peers_;
  const grpc::ServerContextBase& context_;
  const bool uploads_;
  const absl::Duration most_;
  // Both guarded by peers_.mutex_.
  std::optional<absl::Duration> deadline_;
  std::size_t bytes_ = 0;
};

class SilentPeers::Maker final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Maker(SilentPeers& peers) : peers_(peers) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    const absl::string_view method = info->method();
    if (info->type() == ServerRpcInfo::Type::BIDI_STREAMING ||
        absl::EndsWith(method, "/WatchSweep")) {
      return nullptr;
    }
    const bool paged = absl::EndsWith(method, "/ReadLog");
    return new Call(peers_, *info, paged ? kPagerPatience * peers_.most_ : peers_.most_);
  }

 private:
  SilentPeers& peers_;
};

SilentPeers::SilentPeers(const Clock& clock, absl::Duration most, std::size_t most_bytes)
    : clock_(clock), most_(most), most_bytes_(most_bytes), thread_([this] { Run(); }) {}

SilentPeers::~SilentPeers() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> SilentPeers::Factory() {
  return std::make_unique<Maker>(*this);
}

// The answers of cancelled calls are counted until their calls end, which is soon: more calls are
// cancelled than needed, if several begin meanwhile, rather than too few.
void SilentPeers::MakeRoom(const Call& call) {
  std::size_t left = bytes_;
  for (auto at = waiting_.begin(); left > most_bytes_ && at != waiting_.end();) {
    Call* const first = at->second;
    if (first == &call) {
      ++at;
      continue;
    }
    left -= first->bytes();
    at = waiting_.erase(at);
    first->Cancel();
  }
}

// Looks often enough that nobody waits for longer than a fifth above the limit.
void SilentPeers::Run() {
  MutexLock lock(&mutex_);
  while (!mutex_.AwaitFor([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_; },
                          most_ / 5)) {
    const absl::Duration now = clock_.Monotonic();
    while (!waiting_.empty() && waiting_.begin()->first <= now) {
      Call* const call = waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      call->Cancel();
    }
  }
}

}  // namespace pelab::service
