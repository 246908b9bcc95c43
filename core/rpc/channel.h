// Connections to a coordinator.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/rpc/address.h"
#include "core/rpc/credentials.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace pelab::rpc {

inline constexpr int kMaxMessageBytes = 16 << 20;  // of one message, in both directions
inline constexpr int kKeepaliveTimeMs = 10'000;
inline constexpr int kKeepaliveTimeoutMs = 10'000;

// A channel that connects when it is first used, tries again every 250 ms, and takes no
// notice of proxies in the environment. Errors are those of MakeChannelCredentials.
absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(const Address& address,
                                                             const ClientSecurity& security);

enum class OnRefusal {
  kFail,  // answer at the first refusal: there is nobody
  kWait,  // try again until the deadline: a coordinator is being started
};

// CreateChannel and a connection within `timeout`. UNAVAILABLE: "no coordinator at
// unix:/tmp/x.sock".
absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(const Address& address,
                                                       const ClientSecurity& security,
                                                       absl::Duration timeout,
                                                       OnRefusal on_refusal = OnRefusal::kFail);

}  // namespace pelab::rpc
