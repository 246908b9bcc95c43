// Following a sweep until its jobs have ended.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/options.h"
#include "client/source/data_source.h"

namespace pelab::client {

// Shows progress on standard error: a bar on a terminal, plain lines elsewhere (with `json_lines`
// each snapshot on standard output instead). The sweep as it was last seen; CANCELLED after
// `canceller`, which may be null.
absl::StatusOr<v1::Sweep> WatchToEnd(const Context& context, Coordinator& coordinator,
                                     const std::string& sweep, Canceller* canceller,
                                     bool json_lines);

// 0 where every job succeeded, else 3.
int ExitCodeOf(const v1::Sweep& sweep);
// "12 of 12 jobs succeeded".
std::string EndText(const v1::Sweep& sweep);

}  // namespace pelab::client
