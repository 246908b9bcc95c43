// `--dry-run` of run and submit: what a sweep would do, storing nothing.
#pragma once

#include "absl/status/statusor.h"
#include "client/document.h"
#include "client/options.h"

namespace pelab::client {

// Expands here; asks a coordinator, or else the database file where there is one, what is stored
// already.
absl::StatusOr<int> DryRun(const Context& context, const Document& document, bool fresh);

}  // namespace pelab::client
