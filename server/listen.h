// Whether an address can be listened on, with the system's own words where it cannot: gRPC only
// says that it failed.
#pragma once

#include "absl/status/status.h"
#include "core/rpc/address.h"

namespace pelab {

// ALREADY_EXISTS: somebody listens there. Otherwise what the system says. A socket file that nobody
// listens on is fine.
absl::Status CheckFree(const rpc::Address& address);

}  // namespace pelab
