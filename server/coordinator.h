// The coordinator, wired: one object that serves a database until it is stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/rpc/address.h"
#include "core/rpc/credentials.h"

namespace grpc {
class ServerCredentials;
}  // namespace grpc

namespace pelab {

struct CoordinatorOptions {
  std::string database = "pelab.db";
  std::vector<rpc::Address> listen;
  rpc::ServerSecurity security;
  // Where pages and the JSON API are served (server/http/http_server.h); none: nowhere.
  std::optional<rpc::Address> http;
  std::vector<std::string> http_hosts;  // further names under which they are asked for
  bool http_write = false;              // who has the token may change sweeps there
  std::string http_token_file;          // its file; empty: that of `security`
  absl::Duration heartbeat = absl::Seconds(5);
  absl::Duration lease = absl::Seconds(20);
  std::uint64_t artifact_quota = std::uint64_t{20} << 30;
  std::string artifact_store;  // a directory that workers see too; "": DATABASE.artifacts
  absl::Duration artifact_grace = absl::Minutes(15);  // for files that nothing names
  const Clock* clock = &SystemClock::Instance();
};

class Coordinator {
 public:
  // Locks, opens and migrates the database, rebuilds the queue from it, and listens. Errors are one
  // clear sentence: the file is not a pelab database, or from a newer version, or served by another
  // coordinator (with its address), or an address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(const CoordinatorOptions& options);
  ~Coordinator();  // as Stop

  // Where it listens, with the ports that were chosen.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // "http://127.0.0.1:7480", where the pages are; empty: nowhere.
  const std::string& http_address() const { return http_address_; }

  // Tells workers to connect again later, stores what is under way, empties the WAL. Within about
  // 2 seconds; workers go on training.
  void Stop();

 private:
  struct Parts;
  explicit Coordinator(std::unique_ptr<Parts> parts);
  absl::Status Listen(const CoordinatorOptions& options,
                      const std::vector<std::shared_ptr<grpc::ServerCredentials>>& credentials);
  absl::Status ListenHttp(const CoordinatorOptions& options, const std::string& write_token);

  std::unique_ptr<Parts> parts_;
  std::vector<std::string> addresses_;
  std::string http_address_;
};

}  // namespace pelab
