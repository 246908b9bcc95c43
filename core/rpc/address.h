// Where a coordinator listens: "unix:PATH" or "HOST:PORT".
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pelab::rpc {

// A parsed address; a value.
struct Address {
  bool is_unix = false;
  std::string path;  // is_unix
  std::string host;  // otherwise: a name, an IPv4 or an IPv6 address without brackets
  int port = 0;      // 0 to 65535; 0 only to listen on

  // "unix:/run/pelab.sock", "gpu01:7077", "[::1]:7077": what ParseAddress reads, and what gRPC
  // takes to listen on or to connect to.
  std::string ToString() const;
  // A Unix socket, localhost, 127.0.0.0/8 or ::1: nobody else's machine can reach it.
  bool IsLocal() const;
};

enum class PortZero { kRefused, kAllowed };

// INVALID_ARGUMENT names the value and what is allowed. Resolves nothing. A Unix path has at most
// 107 bytes.
absl::StatusOr<Address> ParseAddress(absl::string_view text,
                                     PortZero port_zero = PortZero::kRefused);

}  // namespace pelab::rpc
