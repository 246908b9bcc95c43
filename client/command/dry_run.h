// `--dry-run` of run and submit: says what a sweep would do and stores nothing.
#pragma once

#include "absl/status/statusor.h"
#include "client/options/document.h"
#include "client/options/options.h"

namespace pelab::client {

// Expands the sweep in this process. Asks a coordinator which jobs are already stored; without one,
// reads the database file if it exists.
// Notes what a submission with these options would be refused for.
absl::StatusOr<int> DryRun(const Context& context, const Document& document,
                           const SubmitOptions& submit);

}  // namespace pelab::client
