// `--dry-run` of run and submit: says what a sweep would do and stores nothing.
#pragma once

#include "absl/status/statusor.h"
#include "client/options/document.h"
#include "client/options/options.h"

namespace pelab::client {

// Expands the sweep in this process, and asks the coordinator which jobs are stored. If no
// coordinator is found and --server is not given, reads the database file instead, if it exists and
// --fresh is not given. Without --fresh and --new, warns if a sweep of this name has another
// document or other overrides, because a submission would be refused. Returns the exit status.
absl::StatusOr<int> DryRun(const Context& context, const Document& document,
                           const SubmitOptions& submit);

}  // namespace pelab::client
