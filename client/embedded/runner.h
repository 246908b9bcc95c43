// `pelab run`: one sweep from submission to results. Starts a coordinator and a worker, or joins
// the coordinator that already serves the database.
#pragma once

#include "absl/status/statusor.h"
#include "client/embedded/session.h"
#include "client/options/document.h"
#include "client/options/options.h"

namespace pelab::client {

struct RunOptions {
  SubmitOptions submit;
  WorkerOptions worker;
};

// Runs as an EmbeddedSession. Returns the exit status.
absl::StatusOr<int> RunEmbedded(const Context& context, const Document& document,
                                const RunOptions& options);

}  // namespace pelab::client
