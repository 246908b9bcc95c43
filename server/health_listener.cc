#include "server/health_listener.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/resource_quota.h>
#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
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

}  // namespace

absl::StatusOr<std::unique_ptr<HealthListener>> HealthListener::Listen(
    const rpc::Address& address) {
  std::unique_ptr<HealthListener> listener(new HealthListener());
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  builder.SetResourceQuota(grpc::ResourceQuota("health").Resize(limits::kHealthBytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits::kStreamsOfConnection);
  builder.SetOption(std::make_unique<WithoutPlugins>());
  int port = 0;
  builder.AddListeningPort(address.ToString(), grpc::InsecureServerCredentials(), &port);
  // gRPC starts no server without a service. This one refuses every call; that of health checks is
  // gRPC's own.
  builder.RegisterCallbackGenericService(&listener->no_service_);
  listener->server_ = builder.BuildAndStart();
  if (!listener->server_ || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address.ToString(), " (--health)"));
  }
  rpc::Address bound = address;
  bound.port = port;
  listener->address_ = bound.ToString();
  spdlog::info("health checks on {}", listener->address_);
  return listener;
}

HealthListener::~HealthListener() {
  if (!server_) return;
  server_->GetHealthCheckService()->Shutdown();
  server_->Shutdown(absl::ToChronoTime(absl::Now()));
}

}  // namespace pelab
