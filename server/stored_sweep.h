// A sweep as the database has it: its document with overrides and extensions, and the parts of it
// that are stored as JSON. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/experiment/sweep.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab {

// The stored sweep with its extensions. FAILED_PRECONDITION if this version of pelab refuses its
// document; DATA_LOSS if an extension is none.
absl::StatusOr<experiment::Sweep> RebuildSweep(const v1::Sweep& row);

// A sweep's resources in their form in the database.
std::string ResourcesJson(const experiment::Resources& resources);

// Converts overrides to and from their form in the database.
std::string OverridesToJson(const google::protobuf::RepeatedPtrField<v1::Override>& overrides);
std::vector<experiment::Override> OverridesFromJson(const std::string& json);

// RESOURCE_EXHAUSTED: `queued` jobs of the owner's sweeps wait, and `most` may.
absl::Status QueueIsFull(absl::string_view owner, std::int64_t queued, std::int64_t most);

}  // namespace pelab
