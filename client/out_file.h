// The file that --out names.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pelab::client {

// Where the bytes for `path` go: `path`, or the file that a link there leads to. INVALID_ARGUMENT
// where `path` is a directory, a device, a pipe or a socket; ALREADY_EXISTS where a file is there,
// unless `force`. Thread-safe.
absl::StatusOr<std::string> FileToWrite(const std::string& path, bool force);

}  // namespace pelab::client
