// Reading and writing whole files, and syncing them so that they survive a power loss. Errors name
// the path. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/unique_fd.h"

namespace pelab {

// NOT_FOUND if there is no such file; RESOURCE_EXHAUSTED if it is longer than `max_bytes`;
// INVALID_ARGUMENT if it is a directory.
absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t max_bytes);

// Replaces the whole of `path`, or leaves it unchanged: writes a temporary file beside it, then
// fsync, rename, and fsync of the directory.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view data,
                                 unsigned mode = 0644);

// Opens for appending and creates the file if needed; close-on-exec.
absl::StatusOr<UniqueFd> OpenForAppend(const std::string& path, unsigned mode = 0644);

// Writes all of `data`; retries after interruptions and short writes. `path` is for the message.
absl::Status WriteAll(int fd, absl::string_view data, absl::string_view path);

// Makes a rename, creation or removal in `directory` survive a power loss.
absl::Status FsyncDirectory(const std::string& directory);

// Creates `path` and its missing parent directories.
absl::Status CreateDirectories(const std::string& path);

// Removes a file or a whole tree; OK if there is nothing.
absl::Status RemoveAll(const std::string& path);

// The directory part of a path: "." for a bare file name.
std::string DirectoryOf(const std::string& path);

}  // namespace pelab
