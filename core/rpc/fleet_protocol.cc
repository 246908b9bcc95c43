#include "core/rpc/fleet_protocol.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace pelab::rpc {

std::string ToString(const ProtocolRange& range) {
  if (range.oldest == range.newest) return absl::StrCat(range.newest);
  return absl::StrCat(range.oldest, " to ", range.newest);
}

ProtocolRange ProtocolsOf(const v1::Hello& hello) {
  return {hello.protocol(), std::max(hello.protocol(), hello.protocol_max())};
}

absl::StatusOr<int> ChooseProtocol(const ProtocolRange& worker, const ProtocolRange& coordinator) {
  const int common = std::min(worker.newest, coordinator.newest);
  if (common >= std::max(worker.oldest, coordinator.oldest)) return common;
  return absl::FailedPreconditionError(
      absl::StrCat("the worker speaks protocol ", ToString(worker), " and the coordinator ",
                   ToString(coordinator), "; upgrade the ",
                   worker.newest < coordinator.newest ? "worker" : "coordinator"));
}

}  // namespace pelab::rpc
