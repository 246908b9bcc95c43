// Binds sockets for the coordinator. Errors are the operating system's messages; gRPC would only
// say that it failed.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "core/rpc/address.h"

namespace pelab {

// ALREADY_EXISTS if another program listens there; otherwise the operating system's error. A
// leftover socket file that nobody listens on is not an error.
absl::Status CheckFree(const rpc::Address& address);

struct BoundAddress {
  rpc::Address address;           // with the actual port
  std::vector<UniqueFd> sockets;  // at least one: a name may have several addresses, with one port
};

// Binds every address that the name stands for; nobody can connect before listen(). A leftover
// socket file is replaced. Errors are those of CheckFree. The sockets do not block.
absl::StatusOr<BoundAddress> Bind(const rpc::Address& address);

}  // namespace pelab
