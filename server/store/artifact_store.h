// A directory on a disk that the coordinator and its workers share, in place of FILE.artifacts.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace pelab::store {

// Makes `link` lead to `store`, which belongs to `database` from then on: its file `database` says
// so. Creates `store` where it is missing; repeating it changes nothing. FAILED_PRECONDITION where
// `link` is something else, or `store` is another database's.
absl::Status LinkToStore(const std::string& link, const std::string& database,
                         const std::string& store);

}  // namespace pelab::store
