// Reading files that another program made. The path may turn out to be a pipe, a device or a link.
// Files that users name, such as `--token-file <(...)`, are read by file.h instead, which allows
// that. Errors name the path. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/unique_fd.h"

namespace pelab {

// Opens a regular file for reading, close-on-exec. Never blocks and never follows a symbolic link
// in the last component. NOT_FOUND if there is no file, FAILED_PRECONDITION if it is not a regular
// file.
absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path);

// OK if `path` leads to a regular file or to nothing; links are followed. Otherwise
// FAILED_PRECONDITION, "PATH is a pipe, not a pelab database", if `wanted` is "a pelab database".
// Opens nothing: it never blocks, and it does not end locks of this process (fcntl).
absl::Status CheckRegularFile(const std::string& path, absl::string_view wanted);

// Reads the whole file; RESOURCE_EXHAUSTED if it is longer than `max_bytes`.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, std::size_t max_bytes);

}  // namespace pelab
