// Answers gRPC health checks, and nothing else, on an address of its own without TLS (--health).
// Probes of Kubernetes have no TLS. Everybody who reaches the address may ask, so a connection ends
// after seconds, and only so many are open (server/limits.h).
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/rpc/address.h"
#include "server/acceptor.h"

namespace pelab {

// Thread-safe.
class HealthListener {
 public:
  // Port 0 takes any free port. Errors are those of Acceptor::Take.
  static absl::StatusOr<std::unique_ptr<HealthListener>> Listen(const rpc::Address& address);
  ~HealthListener();  // waits for no check that is under way

  std::string address() const { return acceptor_->address().ToString(); }

 private:
  explicit HealthListener(std::unique_ptr<Acceptor> acceptor) : acceptor_(std::move(acceptor)) {}

  const std::unique_ptr<Acceptor> acceptor_;
  grpc::CallbackGenericService no_service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace pelab
