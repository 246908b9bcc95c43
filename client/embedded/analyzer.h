// `pelab analyze` on a database that nobody serves: starts a coordinator and a worker of its own.
#pragma once

#include "absl/status/statusor.h"
#include "client/command/analysis_plan.h"
#include "client/embedded/session.h"
#include "client/options/options.h"

namespace pelab::client {

// Analyzes trained jobs only; jobs that wait for training are not started. Runs as an
// EmbeddedSession. Returns the exit status.
absl::StatusOr<int> AnalyzeEmbedded(const Context& context, const std::string& target,
                                    const std::string& sweep, const AnalysisWords& words,
                                    const WorkerOptions& worker);

}  // namespace pelab::client
