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

inline constexpr int kMaxMessageBytes = 16 << 20;  // limit of one message, in both directions
inline constexpr int kKeepaliveTimeMs = 10'000;
inline constexpr int kKeepaliveTimeoutMs = 10'000;
inline constexpr int kHandshakeTimeoutMs = 10'000;  // for a new connection's TLS and first frame
inline constexpr int kIdleConnectionMs = 600'000;   // a connection without calls is closed then

// Creates a channel that connects on first use, retries after 100 to 250 ms, and ignores proxies in
// the environment. Its calls carry the client's token, and belong to the trace::CommandTrace that
// exists now; it must outlive them. Errors are those of MakeChannelSecurity.
absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(const Address& address,
                                                             const ClientSecurity& security);

enum class OnRefusal {
  kFail,  // return at the first refusal: nobody listens
  kWait,  // retry until the deadline: a coordinator is starting
};

// Creates a channel and connects it within `timeout`. UNAVAILABLE: "no coordinator at
// unix:/tmp/x.sock".
absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(const Address& address,
                                                       const ClientSecurity& security,
                                                       absl::Duration timeout,
                                                       OnRefusal on_refusal = OnRefusal::kFail);

}  // namespace pelab::rpc
