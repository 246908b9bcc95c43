// What command lines say about jobs. Pure functions: thread-safe. All errors are INVALID_ARGUMENT
// and name the value and what is allowed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// "failed" or "queued,running"; also "open" (queued, assigned, running).
absl::StatusOr<std::vector<v1::JobState>> ParseStates(const std::string& text);
// "model.layers=4" of --set.
absl::StatusOr<v1::Override> ParseOverride(const std::string& text);

// "pe,task": names apart by commas, none empty.
absl::StatusOr<std::vector<std::string>> ParseNames(const std::string& text,
                                                    const std::string& flag);

}  // namespace pelab::client
