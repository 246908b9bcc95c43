// Logging to standard error, the same for every program: spdlog's default logger, set up in main.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pelab {

struct LogOptions {
  // text | json (one object per line: time, level, program, message, and the ids of LogScope)
  std::string format = "text";
  std::string level = "info";  // trace | debug | info | warning | error | off
};

// Makes spdlog's default logger write to standard error, with color only on a terminal. A message
// is one line in both formats, and what it quotes can neither control a terminal nor hide: control
// characters, marks of direction and bytes that are not UTF-8 are escaped (core/base/utf8.h).
// INVALID_ARGUMENT names the value and the allowed values. Call before other threads log.
absl::Status SetUpLogging(absl::string_view program, const LogOptions& options);

}  // namespace pelab
