// How the refusal of a call begins that its principal may make a moment later. Clients wait and try
// again.
#pragma once

#include "absl/strings/string_view.h"

namespace pelab::access {

inline constexpr absl::string_view kTooManyCalls = "too many calls: ";

}  // namespace pelab::access
