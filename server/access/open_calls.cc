#include "server/access/open_calls.h"

#include <grpcpp/server_context.h>

#include <utility>

namespace pelab::access {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

constexpr absl::Duration kLook = absl::Seconds(1);

// One call. Its context exists from the first hook until this object is destroyed.
class Watcher final : public grpc::experimental::Interceptor {
 public:
  Watcher(OpenCalls& calls, const grpc::ServerContextBase& context)
      : calls_(calls), context_(context) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    // Cancelling calls this too, with the mutex held.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_CANCEL)) return;
    // Before this, the context has no metadata.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      stream_.emplace(calls_, context_);
    }
    methods->Proceed();
  }

 private:
  OpenCalls& calls_;
  const grpc::ServerContextBase& context_;
  std::optional<OpenCalls::Stream> stream_;
};

class Maker final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Maker(OpenCalls& calls) : calls_(calls) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    if (info->type() == ServerRpcInfo::Type::UNARY ||
        info->type() == ServerRpcInfo::Type::BIDI_STREAMING) {
      return nullptr;
    }
    return new Watcher(calls_, *info->server_context());
  }

 private:
  OpenCalls& calls_;
};

}  // namespace

OpenCalls::Stream::Stream(OpenCalls& calls, const grpc::ServerContextBase& context)
    : calls_(calls), context_(context), principal_(calls.holder_(context)) {
  MutexLock lock(&calls_.mutex_);
  calls_.open_.insert(this);
  if (principal_) calls_.streams_[*principal_] += 1;
}

OpenCalls::Stream::~Stream() {
  MutexLock lock(&calls_.mutex_);
  calls_.open_.erase(this);
  if (!principal_) return;
  const auto streams = calls_.streams_.find(*principal_);
  if (--streams->second == 0) calls_.streams_.erase(streams);
}

OpenCalls::OpenCalls(Holder holder, std::function<void()> tick)
    : holder_(std::move(holder)), tick_(std::move(tick)), thread_([this] { Run(); }) {}

OpenCalls::~OpenCalls() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> OpenCalls::Factory() {
  return std::make_unique<Maker>(*this);
}

int OpenCalls::StreamsOf(const std::string& principal) {
  MutexLock lock(&mutex_);
  const auto found = streams_.find(principal);
  return found == streams_.end() ? 0 : found->second;
}

void OpenCalls::EndThoseThatMayNot() {
  for (const Stream* const stream : open_) {
    const std::optional<std::string> now = holder_(stream->context_);
    if (!now || now != stream->principal_) stream->context_.TryCancel();
  }
}

void OpenCalls::Run() {
  MutexLock lock(&mutex_);
  while (
      !mutex_.AwaitFor([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_; }, kLook)) {
    EndThoseThatMayNot();
    tick_();
  }
}

}  // namespace pelab::access
