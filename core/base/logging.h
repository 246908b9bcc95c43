// What every program writes to standard error: spdlog's default logger, set up once in main.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pelab {

struct LogOptions {
  std::string format = "text";  // text | json (one object a line: time, level, program, message)
  std::string level = "info";   // trace | debug | info | warning | error | off
};

// Makes spdlog's default logger write to standard error, coloured on a terminal only.
// INVALID_ARGUMENT names the value and what is allowed. Call before other threads log.
absl::Status SetUpLogging(absl::string_view program, const LogOptions& options);

}  // namespace pelab
