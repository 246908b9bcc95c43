// Reading files that another program made. The path may turn out to be a pipe, a device or a link.
// Errors name the path. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace pelab {

// Opens a regular file for reading, close-on-exec. Never blocks and never follows a symbolic link
// in the last component. NOT_FOUND if there is no file, FAILED_PRECONDITION if it is not a regular
// file.
absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path);

// Reads the whole file; RESOURCE_EXHAUSTED if it is longer than `max_bytes`.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, std::size_t max_bytes);

}  // namespace pelab
