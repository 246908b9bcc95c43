// The part of `pelab check` for files of data.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/options/options.h"

namespace pelab::client {

// Shows what is in the file and what may be wrong with it. Returns the exit status.
absl::StatusOr<int> CheckData(const Context& context, const std::string& path);

}  // namespace pelab::client
