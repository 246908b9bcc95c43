#include "core/rpc/send_trace.h"

#include <utility>

#include "core/rpc/call_span.h"

namespace pelab::rpc {
namespace {

using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

class TraceSender final : public Interceptor {
 public:
  TraceSender(trace::CommandTrace& command, const char* path)
      : command_(command), span_(BeginCall(path, trace::Kind::kClient)) {
    span_.context = ChildOf(command.context());
    span_.parent_span_id = command.context().span_id;
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(kTraceparentKey, Traceparent(span_.context));
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_STATUS)) {
      EndCall(*methods->GetRecvStatus(), span_);
      command_.Record(std::move(span_));
    }
    methods->Proceed();
  }

 private:
  trace::CommandTrace& command_;
  trace::Span span_;
};

class TraceSenders final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TraceSenders(trace::CommandTrace& command) : command_(command) {}
  Interceptor* CreateClientInterceptor(ClientRpcInfo* info) override {
    return new TraceSender(command_, info->method());
  }

 private:
  trace::CommandTrace& command_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> SendTrace(
    trace::CommandTrace& command) {
  return std::make_unique<TraceSenders>(command);
}

}  // namespace pelab::rpc
