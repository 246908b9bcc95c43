#include "server/access/open_calls.h"

#include <grpcpp/server_context.h>

#include <optional>
#include <utility>

namespace pelab::access {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

constexpr absl::Duration kLook = absl::Seconds(1);

}  // namespace

// One stream. Its context exists from the first hook until the object is destroyed.
class OpenCalls::Call final : public grpc::experimental::Interceptor {
 public:
  Call(OpenCalls& calls, grpc::ServerContextBase& context) : calls_(calls), context_(context) {}
  ~Call() override {
    MutexLock lock(&calls_.mutex_);
    calls_.calls_.erase(this);
    if (!principal_) return;
    const auto streams = calls_.streams_.find(*principal_);
    if (--streams->second == 0) calls_.streams_.erase(streams);
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    // Cancelling calls this too, with the mutex held.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_CANCEL)) return;
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      Begin();
    }
    methods->Proceed();
  }

  // Whether the call may go on. The mutex must be held.
  bool MayGoOn() const { return calls_.holder_(context_) == principal_; }
  void Cancel() const { context_.TryCancel(); }

 private:
  void Begin() {
    std::optional<std::string> principal = calls_.holder_(context_);
    MutexLock lock(&calls_.mutex_);
    if (!principal || principal_) return;
    principal_ = std::move(principal);
    calls_.streams_[*principal_] += 1;
    calls_.calls_.insert(this);
  }

  OpenCalls& calls_;
  grpc::ServerContextBase& context_;
  std::optional<std::string> principal_;  // guarded by calls_.mutex_
};

class OpenCalls::Maker final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Maker(OpenCalls& calls) : calls_(calls) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    if (info->type() == ServerRpcInfo::Type::UNARY) return nullptr;
    return new Call(calls_, *info->server_context());
  }

 private:
  OpenCalls& calls_;
};

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
  for (const Call* const call : calls_) {
    if (!call->MayGoOn()) call->Cancel();
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
