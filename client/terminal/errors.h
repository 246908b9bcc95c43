// How errors reach people and scripts; no other file formats them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/options/options.h"

namespace pelab::client {

// The program's exit status for an error: 2 for a wrong request (invalid, not found, already there,
// not permitted and the like), 4 for no coordinator, 130 for an interrupt, 1 for anything else.
int ExitCodeOf(const absl::Status& status);

// Writes one line to standard error ("pelab: no sweep \"x\""). Violations of a sweep document get
// one line each: "FILE:LINE:COLUMN: MESSAGE". With --output json or jsonl, writes one JSON value to
// standard output instead:
// {"error": {"code", "exit_code", "message", "file", "violations": [{"line", "column", "path",
// "value", "allowed", "message"}]}}.
// "file" and "violations" are present only if the status has violations. Returns
// ExitCodeOf(status).
int ReportError(const Context& context, const absl::Status& status, const std::string& file_name);

// The same error as the last member and the closing brace of an object that is already partly
// written: `  "error": {…}\n}\n`.
std::string ErrorMember(const absl::Status& status);

}  // namespace pelab::client
