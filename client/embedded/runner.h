// `pelab run`: one sweep from submission to its results, with a coordinator and a worker brought
// along, or in one that already serves the database.
#pragma once

#include "absl/status/statusor.h"
#include "client/document.h"
#include "client/embedded/session.h"
#include "client/options.h"

namespace pelab::client {

struct RunOptions {
  SubmitOptions submit;
  WorkerOptions worker;
};

// As EmbeddedSession runs. The exit status.
absl::StatusOr<int> RunEmbedded(const Context& context, const Document& document,
                                const RunOptions& options);

}  // namespace pelab::client
