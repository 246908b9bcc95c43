// The only conversion between absl::Status and grpc::Status. Violations travel along: as the
// payload kViolationsUrl in absl::Status, and as binary error details in grpc::Status. ToGrpc
// shortens long messages and leaves out violations that exceed 4 KiB. Thread-safe.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace pelab::v1 {
class Violations;
}  // namespace pelab::v1

namespace pelab::rpc {

inline constexpr absl::string_view kViolationsUrl = "pelab.v1.Violations";

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

// INVALID_ARGUMENT with the violations attached; its message has their sentences, one per line.
absl::Status ViolationsError(const v1::Violations& violations);
// The violations of a status; nullopt if it has none.
std::optional<v1::Violations> GetViolations(const absl::Status& status);

}  // namespace pelab::rpc
