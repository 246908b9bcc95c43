#include "core/rpc/channel.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "core/rpc/send_token.h"
#include "core/rpc/send_trace.h"

namespace pelab::rpc {
namespace {

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Callers pause between tries themselves. Without a short back-off, the channel would pause as
  // well and refuse calls meanwhile.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 250);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

absl::Status NoCoordinator(const Address& address) {
  return absl::UnavailableError(absl::StrCat("no coordinator at ", address.ToString()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(const Address& address,
                                                             const ClientSecurity& security) {
  PELAB_ASSIGN_OR_RETURN(ChannelSecurity made, MakeChannelSecurity(security, address));
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (made.token) interceptors.push_back(SendToken(std::move(made.token)));
  if (trace::CommandTrace* const command = trace::CommandTrace::Current()) {
    interceptors.push_back(SendTrace(*command));
  }
  if (interceptors.empty()) {
    return grpc::CreateCustomChannel(address.ToString(), made.credentials, Arguments());
  }
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      address.ToString(), made.credentials, Arguments(), std::move(interceptors));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(const Address& address,
                                                       const ClientSecurity& security,
                                                       absl::Duration timeout,
                                                       OnRefusal on_refusal) {
  PELAB_ASSIGN_OR_RETURN(auto channel, CreateChannel(address, security));
  const auto deadline = absl::ToChronoTime(absl::Now() + timeout);
  while (true) {
    const grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return channel;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE && on_refusal == OnRefusal::kFail)
      return NoCoordinator(address);
    if (!channel->WaitForStateChange(state, deadline)) return NoCoordinator(address);
  }
}

}  // namespace pelab::rpc
