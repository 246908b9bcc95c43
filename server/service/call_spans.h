// The traces that clients' calls belong to, and spans of these calls.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <optional>

#include "core/base/trace_context.h"
#include "core/trace/span_file.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace pelab::service {

// The span of a call that is being answered, below the span that the client names in the metadata
// `traceparent`; a client must name a new one for each call. nullopt: it names none, or no valid
// one. For one call, the function always returns the same span.
std::optional<TraceContext> SpanOf(const grpc::ServerContextBase& context);

// The trace of a sweep that this call makes: the call's, or, if the client names none, one of its
// own, whose first spans are its attempts.
TraceContext TraceOfSweep(const grpc::ServerContextBase& context);

// For grpc::ServerBuilder: records each call whose client names a span, unless it is a worker's
// session. `spans` must live as long as the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallSpans(
    trace::SpanFile& spans);

}  // namespace pelab::service
