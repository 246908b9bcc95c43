// The span of a gRPC call, as OpenTelemetry's conventions have it. The same at both of its ends.
#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "core/trace/span.h"

namespace pelab::rpc {

// A span that begins now. `path`: "/pelab.v1.Sweeps/Submit"; its name is "Sweeps/Submit". It has no
// context yet.
trace::Span BeginCall(std::string_view path, trace::Kind kind);

// The call has ended now, with this status.
void EndCall(const grpc::Status& status, trace::Span& span);

}  // namespace pelab::rpc
