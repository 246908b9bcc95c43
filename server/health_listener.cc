#include "server/health_listener.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/resource_quota.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/rpc/channel.h"
#include "server/limits.h"

namespace pelab {
namespace {

// Without reflection, which is added to every server of the process.
class WithoutPlugins : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->clear();
  }
};

// A peer that says nothing is given up after the handshake's time. Otherwise a connection ends at
// its age, which gRPC varies by a tenth, and after the grace.
constexpr absl::Duration kConnectionTime = absl::Milliseconds(
    rpc::kHandshakeTimeoutMs + 11 * limits::kHealthConnectionMs / 10 + limits::kHealthGraceMs);

}  // namespace

absl::StatusOr<std::unique_ptr<HealthListener>> HealthListener::Listen(
    const rpc::Address& address) {
  PELAB_ASSIGN_OR_RETURN(auto acceptor, Acceptor::Take(address));
  std::unique_ptr<HealthListener> listener(new HealthListener(std::move(acceptor)));
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  builder.SetResourceQuota(grpc::ResourceQuota("health").Resize(limits::kHealthBytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits::kStreamsOfConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, limits::kHealthConnectionMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, limits::kHealthGraceMs);
  builder.SetOption(std::make_unique<WithoutPlugins>());
  using Kind = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  auto connections = builder.experimental().AddExternalConnectionAcceptor(
      Kind::FROM_FD, grpc::InsecureServerCredentials());
  // gRPC starts no server without a service. This one refuses every call; that of health checks is
  // gRPC's own.
  builder.RegisterCallbackGenericService(&listener->no_service_);
  listener->server_ = builder.BuildAndStart();
  if (!listener->server_) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address.ToString(), " (--health)"));
  }
  PELAB_RETURN_IF_ERROR(listener->acceptor_->Start(
      std::move(connections), RecentConnections::Limits{.of_address = limits::kHealthOfAddress,
                                                        .in_all = limits::kHealthConnections,
                                                        .time = kConnectionTime}));
  spdlog::info("health checks on {}", listener->address());
  return listener;
}

HealthListener::~HealthListener() {
  acceptor_->Stop();
  if (!server_) return;
  server_->GetHealthCheckService()->Shutdown();
  server_->Shutdown(absl::ToChronoTime(absl::Now()));
}

}  // namespace pelab
