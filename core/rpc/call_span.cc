#include "core/rpc/call_span.h"

#include <cstdint>
#include <string>

#include "absl/time/clock.h"
#include "core/base/strings.h"

namespace pelab::rpc {

trace::Span BeginCall(std::string_view path, trace::Kind kind) {
  const std::string_view whole = path.substr(path.starts_with('/') ? 1 : 0);
  const std::string_view service = whole.substr(0, whole.find('/'));
  const std::string_view method = whole.substr(whole.find('/') + 1);
  trace::Span span;
  span.name = std::string(whole.substr(service.rfind('.') + 1));
  span.kind = kind;
  span.start = absl::Now();
  span.attributes = {{"rpc.system", "grpc"},
                     {"rpc.service", std::string(service)},
                     {"rpc.method", std::string(method)}};
  return span;
}

void EndCall(const grpc::Status& status, trace::Span& span) {
  span.end = absl::Now();
  span.attributes.emplace_back("rpc.grpc.status_code", std::int64_t{status.error_code()});
  if (status.ok()) return;
  span.error = status.error_message().empty() ? Concat("gRPC status ", int{status.error_code()})
                                              : status.error_message();
}

}  // namespace pelab::rpc
