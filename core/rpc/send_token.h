// Puts a client's token into each of its calls.
#pragma once

#include <grpcpp/support/client_interceptor.h>

#include <memory>

#include "core/rpc/secrets.h"

namespace pelab::rpc {

// For a channel over TLS, or to this machine: gRPC's own credentials of calls refuse the latter.
std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> SendToken(
    std::shared_ptr<TokenFile> token);

}  // namespace pelab::rpc
