// Parsers for flags that select or change jobs. Pure functions: thread-safe. All errors are
// INVALID_ARGUMENT and name the wrong value and what is allowed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// Parses --state: "failed" or "queued,running". "open" stands for queued, assigned and running.
absl::StatusOr<std::vector<v1::JobState>> ParseStates(const std::string& text);
// Parses one --set: "model.layers=4".
absl::StatusOr<v1::Override> ParseOverride(const std::string& text);

// Parses names separated by commas, "pe,task". An empty name is an error, which names `flag`.
absl::StatusOr<std::vector<std::string>> ParseNames(const std::string& text,
                                                    const std::string& flag);

}  // namespace pelab::client
