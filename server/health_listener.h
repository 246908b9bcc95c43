// Answers gRPC health checks, and nothing else, on an address of its own without TLS (--health).
// Probes of Kubernetes have no TLS.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/rpc/address.h"

namespace pelab {

// Thread-safe.
class HealthListener {
 public:
  // Port 0 takes any free port. UNAVAILABLE if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HealthListener>> Listen(const rpc::Address& address);
  ~HealthListener();  // waits for no check that is under way

  const std::string& address() const { return address_; }

 private:
  HealthListener() = default;

  std::string address_;
  grpc::CallbackGenericService no_service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace pelab
