// Errors at the edge: what people and scripts see of them, once.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/options.h"

namespace pelab::client {

// The program's exit status for an error: 2 for what was asked wrongly, 4 for no coordinator, 1 for
// the rest.
int ExitCodeOf(const absl::Status& status);

// One line on standard error ("pelab: no sweep \"x\""); for violations of a sweep document one line
// each, as "FILE:LINE:COLUMN: MESSAGE". With --output json one JSON value on standard output
// instead:
// {"error": {"code", "exit_code", "message", "violations": [{"line", "column", "path", "value",
// "allowed", "message"}]}}. Returns ExitCodeOf(status).
int ReportError(const Context& context, const absl::Status& status, const std::string& file_name);

// The same as the last member and the end of an object that is partly out: `  "error": {…}\n}\n`.
std::string ErrorMember(const absl::Status& status);

}  // namespace pelab::client
