// What may be changed over HTTP, as the gRPC calls that the command line makes: the same services
// answer both.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/render/json.h"
#include "pelab/v1/sweeps.grpc.pb.h"

namespace pelab::http {

// Whether POST has something to do at this path below /api/v1: {"sweeps", "3", "pause"}.
bool IsAction(const std::vector<std::string>& path);

// Does it. `body` is a JSON object with the action's members, or empty. INVALID_ARGUMENT for an
// unknown member or a value that cannot be; NOT_FOUND for a path that IsAction does not know; else
// the service's errors. Thread-safe.
absl::StatusOr<render::Json> Act(const std::vector<std::string>& path, const std::string& body,
                                 v1::Sweeps::StubInterface& sweeps);

}  // namespace pelab::http
