// Accepts connections for gRPC. The listener of gRPC 1.51 ends for good when accept() fails, for
// example because all descriptors are in use for a moment: the coordinator would then live on
// without being reachable. This one waits and continues, and it leaves some descriptors free for
// the database and its files. It can also bound the connections of an address that has no
// principals.
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "server/listen.h"
#include "server/recent_connections.h"

namespace pelab {

class Acceptor {
 public:
  using Connections = grpc::experimental::ExternalConnectionAcceptor;

  // Takes the address, so that no other program can; nobody can connect yet. Errors are those of
  // Bind (server/listen.h).
  static absl::StatusOr<std::unique_ptr<Acceptor>> Take(const rpc::Address& address);
  ~Acceptor();  // like Stop

  const rpc::Address& address() const { return bound_.address; }  // with the actual port

  // Lets clients connect, and gives their connections to `connections`, which a started server
  // made. A connection above the limits is closed at once. Call once.
  absl::Status Start(std::unique_ptr<Connections> connections,
                     const std::optional<RecentConnections::Limits>& limits = std::nullopt);

  // Closes the address; connections that exist go on. Removes the file of a Unix socket.
  void Stop();

 private:
  explicit Acceptor(BoundAddress bound) : bound_(std::move(bound)) {}
  void Run();
  bool AcceptAll(int listener);
  void Refuse(const std::string& why);

  BoundAddress bound_;
  std::unique_ptr<Connections> connections_;
  std::optional<RecentConnections> recent_;
  UniqueFd ending_;  // readable when Stop was called
  std::thread thread_;
  absl::Time warned_ = absl::InfinitePast();
};

}  // namespace pelab
