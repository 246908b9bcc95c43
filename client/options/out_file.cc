#include "client/options/out_file.h"

#include <filesystem>
#include <system_error>

#include "core/base/strings.h"

namespace pelab::client {

absl::StatusOr<std::string> FileToWrite(const std::string& path, bool force) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
    return absl::InvalidArgumentError(Concat(path, " is a link to a file that is not there"));
  }
  if (fs::is_directory(status)) {
    return absl::InvalidArgumentError(Concat(path, " is a directory; name a file in it"));
  }
  if (!fs::is_regular_file(status)) {
    return absl::InvalidArgumentError(Concat(path, " is a device or a pipe; name a file"));
  }
  if (!force) return absl::AlreadyExistsError(Concat(path, " already exists; --force replaces it"));
  const fs::path target = fs::canonical(path, error);
  return error ? path : target.string();
}

}  // namespace pelab::client
