// Reading and writing whole files, and syncing them so that they survive a power loss. Errors name
// the path. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/unique_fd.h"

namespace pelab {

// NOT_FOUND if there is no such file; RESOURCE_EXHAUSTED if it is longer than `max_bytes`;
// INVALID_ARGUMENT if it is a directory.
absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t max_bytes);

// Reads on to the end of the file and calls `use` for each piece of at most 256 KiB. Ends with the
// first error. `path` is for the message.
absl::Status ReadPieces(int fd, absl::string_view path,
                        const std::function<absl::Status(std::string piece)>& use);

// The size of an open file in bytes; nullopt if it cannot be read.
std::optional<std::uint64_t> BytesOf(int fd);

// Replaces the whole of `path`, or leaves it unchanged: writes a temporary file beside it, then
// fsync, rename, and fsync of the directory. If only the last one fails, `path` is new although an
// error is returned. The umask reduces `mode`, here and below.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view data,
                                 unsigned mode = 0644);

// Creates a file for writing; close-on-exec. ALREADY_EXISTS if anything has that name, be it a link
// to nothing.
absl::StatusOr<UniqueFd> CreateNewFile(const std::string& path, unsigned mode = 0644);
// Creates a file with this content and syncs it. After an error no file was added.
absl::Status WriteNewFile(const std::string& path, absl::string_view data, unsigned mode = 0644);

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

// The name of the file that a path leads to: symbolic links in its last component are replaced by
// their targets, also if the target does not exist. So the files beside a database (FILE.lock,
// FILE-wal, FILE.artifacts) have one name. The path as it is if it is no link or leads in circles.
std::string ResolveLinks(const std::string& path);

// Whether `name` may become the name of a file in some folder.
bool IsPlainFileName(absl::string_view name);
// The rule in words, for messages.
inline constexpr char kPlainFileName[] =
    "1 to 256 bytes without \"/\" and control characters, and neither \".\" nor \"..\"";

// The directory part of a path: "." for a bare file name.
std::string DirectoryOf(const std::string& path);

}  // namespace pelab
