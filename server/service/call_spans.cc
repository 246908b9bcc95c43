#include "server/service/call_spans.h"

#include <grpcpp/server_context.h>

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/sha256.h"
#include "core/rpc/call_span.h"

namespace pelab::service {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;
using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

constexpr std::size_t kSpanDigits = 16;

std::optional<TraceContext> ClientSpanOf(const Metadata& metadata) {
  const auto found = metadata.find(kTraceparentKey);
  if (found == metadata.end()) return std::nullopt;
  return ParseTraceparent({found->second.data(), found->second.size()});
}

// A hash in place of a random number: the interceptor and the method cannot tell each other the
// number, and both know the client's span.
TraceContext Below(const TraceContext& client) {
  return {client.trace_id,
          Sha256Hex(absl::StrCat("call ", Traceparent(client))).substr(0, kSpanDigits)};
}

class Recorder final : public grpc::experimental::Interceptor {
 public:
  Recorder(trace::SpanFile& spans, const char* path)
      : spans_(spans), span_(rpc::BeginCall(path, trace::Kind::kServer)) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      client_ = ClientSpanOf(*methods->GetRecvInitialMetadata());
    }
    if (client_ && methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      Record(methods->GetSendStatus());
    }
    methods->Proceed();
  }

 private:
  void Record(const grpc::Status& status) {
    span_.context = Below(*client_);
    span_.parent_span_id = client_->span_id;
    rpc::EndCall(status, span_);
    spans_.Add(span_);
  }

  trace::SpanFile& spans_;
  std::optional<TraceContext> client_;
  trace::Span span_;
};

class Maker final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Maker(trace::SpanFile& spans) : spans_(spans) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    if (info->type() == ServerRpcInfo::Type::BIDI_STREAMING) return nullptr;
    return new Recorder(spans_, info->method());
  }

 private:
  trace::SpanFile& spans_;
};

}  // namespace

std::optional<TraceContext> SpanOf(const grpc::ServerContextBase& context) {
  const std::optional<TraceContext> client = ClientSpanOf(context.client_metadata());
  return client ? std::optional<TraceContext>(Below(*client)) : std::nullopt;
}

TraceContext TraceOfSweep(const grpc::ServerContextBase& context) {
  return SpanOf(context).value_or(TraceContext{NewTrace().trace_id, ""});
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallSpans(
    trace::SpanFile& spans) {
  return std::make_unique<Maker>(spans);
}

}  // namespace pelab::service
