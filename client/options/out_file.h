// The file that --out names.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pelab::client {

// Returns the path to write to: `path` itself, or the target if `path` is a link to a file.
// INVALID_ARGUMENT if `path` is a directory, a device, a pipe, a socket or a broken link.
// ALREADY_EXISTS if a file is there and `force` is not set. Thread-safe.
absl::StatusOr<std::string> FileToWrite(const std::string& path, bool force);

}  // namespace pelab::client
