// Tells a coordinator which trace a call belongs to.
#pragma once

#include <grpcpp/support/client_interceptor.h>

#include <memory>

#include "core/trace/command_trace.h"

namespace pelab::rpc {

// Each call of the channel becomes a span below `command`'s, which it sends as the metadata
// `traceparent`. `command` must outlive the channel's calls.
std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> SendTrace(
    trace::CommandTrace& command);

}  // namespace pelab::rpc
