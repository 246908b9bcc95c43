// `pelab analyze` where nobody serves the database: the analyses with a coordinator and a worker
// brought along.
#pragma once

#include "absl/status/statusor.h"
#include "client/analysis_plan.h"
#include "client/embedded/session.h"
#include "client/options.h"

namespace pelab::client {

// Jobs that are still to be trained are left alone. As EmbeddedSession runs. The exit status.
absl::StatusOr<int> AnalyzeEmbedded(const Context& context, const std::string& target,
                                    const std::string& sweep, const AnalysisWords& words,
                                    const WorkerOptions& worker);

}  // namespace pelab::client
