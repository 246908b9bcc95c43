// A directory on a disk that the coordinator and its workers share. It replaces FILE.artifacts.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace pelab::store {

// Makes `link` a symbolic link to `store` and marks `store` as belonging to `database` (in a file
// `database` inside it). Creates `store` if it is missing. Repeating the call changes nothing.
// FAILED_PRECONDITION if `link` is something else, or if `store` belongs to another database.
absl::Status LinkToStore(const std::string& link, const std::string& database,
                         const std::string& store);

}  // namespace pelab::store
