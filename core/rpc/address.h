// The address of a coordinator: "unix:PATH" or "HOST:PORT".
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pelab::rpc {

// A parsed address; a value.
struct Address {
  bool is_unix = false;
  std::string path;  // set for a Unix socket
  std::string host;  // otherwise: a name, an IPv4 address, or an IPv6 address without brackets
  int port = 0;      // 0 to 65535; 0 only for listening (any free port)

  // "unix:/run/pelab.sock", "gpu01:7077", "[::1]:7077": the form that ParseAddress reads, and that
  // gRPC accepts for listening and connecting.
  std::string ToString() const;
  // Whether no other machine can reach the address: a Unix socket, localhost, 127.0.0.0/8 or ::1.
  bool IsLocal() const;
};

enum class PortZero { kRefused, kAllowed };

// INVALID_ARGUMENT names the value and the allowed forms. Does not resolve names. A Unix path has
// at most 107 bytes.
absl::StatusOr<Address> ParseAddress(absl::string_view text,
                                     PortZero port_zero = PortZero::kRefused);

}  // namespace pelab::rpc
