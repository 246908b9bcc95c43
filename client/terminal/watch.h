// Following a sweep until all its jobs have ended.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/options/options.h"
#include "client/source/data_source.h"

namespace pelab::client {

// Shows progress on standard error: a redrawn display on a terminal with color, plain lines
// elsewhere. With `json_lines`, prints each snapshot to standard output instead. Returns the last
// state of the sweep; CANCELLED if `canceller` (may be null) is cancelled.
absl::StatusOr<v1::Sweep> WatchToEnd(const Context& context, Coordinator& coordinator,
                                     const std::string& sweep, Canceller* canceller,
                                     bool json_lines);

// 0 if every job succeeded, else 3.
int ExitCodeOf(const v1::Sweep& sweep);
// "12 of 12 jobs succeeded".
std::string EndText(const v1::Sweep& sweep);

}  // namespace pelab::client
