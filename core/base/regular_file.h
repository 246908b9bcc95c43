// Files that another program has made and that may be anything: a pipe, a device, a link elsewhere.
// Errors name the path. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace pelab {

// Opens a regular file for reading, close-on-exec, without ever waiting for anybody and without
// following a symbolic link. NOT_FOUND where there is none, FAILED_PRECONDITION where it is something
// else.
absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path);

// The whole of one; RESOURCE_EXHAUSTED where it is longer than `max_bytes`.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, std::size_t max_bytes);

}  // namespace pelab
