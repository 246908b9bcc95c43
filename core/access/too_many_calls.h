// The beginning of a message that refuses a call only for now: the same call may succeed a moment
// later. Clients wait and try again.
#pragma once

#include "absl/strings/string_view.h"

namespace pelab::access {

inline constexpr absl::string_view kTooManyCalls = "too many calls: ";

}  // namespace pelab::access
