// What command lines say about jobs. Pure functions: thread-safe. All errors are INVALID_ARGUMENT
// and name the value and what is allowed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// "pe=rope,task!=counting,train.lr>=1e-4": conditions with = != < <= > >=, apart by commas; commas
// within brackets belong to the value ("pe_label=rope(base=500,scale=2)").
absl::StatusOr<std::vector<v1::Condition>> ParseWhere(const std::string& text);

// "failed" or "queued,running"; also "open" (queued, assigned, running).
absl::StatusOr<std::vector<v1::JobState>> ParseStates(const std::string& text);
// "model.layers=4" of --set.
absl::StatusOr<v1::Override> ParseOverride(const std::string& text);

// "pe,task": names apart by commas, none empty.
absl::StatusOr<std::vector<std::string>> ParseNames(const std::string& text,
                                                    const std::string& flag);

}  // namespace pelab::client
