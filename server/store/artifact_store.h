// A directory on a disk that the coordinator and its workers share. It replaces FILE.artifacts.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace pelab::store {

// The directory, and who may use what the coordinator makes in it. All other files of a coordinator
// are its user's alone (pelab-server's main), but workers may be other users.
struct SharedStore {
  std::string directory;
  mode_t umask = 077;
  mode_t file_mode() const { return 0644 & ~umask; }
  mode_t folder_mode() const { return 0777 & ~umask; }
};

// Creates the folder of `store` or one in it, if it is missing, with its mode. Directories above it
// that are missing have the mode of every other directory.
absl::Status CreateFolder(const std::string& folder, const SharedStore& store);

// Makes `link` a symbolic link to the directory and marks it as belonging to `database` (in a file
// `database` inside it). Creates it if it is missing. Repeating the call changes nothing.
// FAILED_PRECONDITION if `link` is something else, or if it belongs to another database.
absl::Status LinkToStore(const std::string& link, const std::string& database,
                         const SharedStore& store);

}  // namespace pelab::store
