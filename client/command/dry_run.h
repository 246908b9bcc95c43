// `--dry-run` of run and submit: says what a sweep would do and stores nothing.
#pragma once

#include "absl/status/statusor.h"
#include "client/options/document.h"
#include "client/options/options.h"

namespace pelab::client {

// Expands the sweep in this process. Asks a coordinator which jobs are stored already. If none is
// found and --server names none, reads the database file, if it exists. Warns if the sweep's name
// has another document or other overrides, because a submission would then be refused.
absl::StatusOr<int> DryRun(const Context& context, const Document& document,
                           const SubmitOptions& submit);

}  // namespace pelab::client
