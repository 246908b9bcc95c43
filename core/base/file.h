// Whole files, and what it takes to keep them through a power loss. Errors name the path.
// Thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/unique_fd.h"

namespace pelab {

// NOT_FOUND where there is no such file; RESOURCE_EXHAUSTED where it is longer than `max_bytes`;
// INVALID_ARGUMENT where it is a directory.
absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t max_bytes);

// Replaces `path` whole or not at all: a temporary file beside it, fsync, rename, fsync of the
// directory.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view data,
                                 unsigned mode = 0644);

// Opens for appending, creating where needed; close-on-exec.
absl::StatusOr<UniqueFd> OpenForAppend(const std::string& path, unsigned mode = 0644);

// Writes all of `data`, through interruptions and short writes; `path` is for the message.
absl::Status WriteAll(int fd, absl::string_view data, absl::string_view path);

// Makes a rename, creation or removal in `directory` last.
absl::Status FsyncDirectory(const std::string& directory);

// Creates `path` and the directories above it where they are missing.
absl::Status CreateDirectories(const std::string& path);

// Removes a file or a whole tree; nothing there is fine.
absl::Status RemoveAll(const std::string& path);

// The directory of a path: "." for a bare name.
std::string DirectoryOf(const std::string& path);

}  // namespace pelab
