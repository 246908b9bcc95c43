// Changes that are possible over HTTP. They are made with the gRPC calls that the command line also
// uses, and the same services answer them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/render/json.h"
#include "pelab/v1/sweeps.grpc.pb.h"

namespace pelab::http {

// Whether POST does something at this path below /api/v1, such as {"sweeps", "3", "pause"}.
bool IsAction(const std::vector<std::string>& path);

// Performs the action. `body` is a JSON object with the action's members, or empty.
// INVALID_ARGUMENT for an unknown member or an impossible value; NOT_FOUND for a path that IsAction
// refuses; otherwise the service's errors. Thread-safe.
absl::StatusOr<render::Json> Act(const std::vector<std::string>& path, const std::string& body,
                                 v1::Sweeps::StubInterface& sweeps);

}  // namespace pelab::http
