// The address of --notify.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace pelab::notify {

struct Address {
  std::string host;  // "https://ntfy.example.org:8443": what may be logged
  std::string path;  // "/hooks/x?y=z"; it may be a secret
};

// An address such as https://HOST/PATH or http://HOST:PORT/PATH. INVALID_ARGUMENT names what is
// wrong and what is allowed, without the path. Pure.
absl::StatusOr<Address> ParseAddress(std::string_view url);

}  // namespace pelab::notify
