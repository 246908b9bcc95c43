// Checks whether an address can be listened on. If it cannot, the error is the operating system's
// message; gRPC would only say that it failed.
#pragma once

#include "absl/status/status.h"
#include "core/rpc/address.h"

namespace pelab {

// ALREADY_EXISTS if another program listens there; otherwise the operating system's error. A
// leftover socket file that nobody listens on is not an error.
absl::Status CheckFree(const rpc::Address& address);

}  // namespace pelab
