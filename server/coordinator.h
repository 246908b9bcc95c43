// The coordinator, fully assembled: one object that serves a database until it is stopped.
#pragma once

#include <cstddef>
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
#include "core/rpc/secrets.h"
#include "server/backups/scheduled_backups.h"
#include "server/limits.h"
#include "server/notify/notifier.h"
#include "server/store/artifact_store.h"

namespace pelab {

struct CoordinatorOptions {
  std::string database = "pelab.db";
  std::vector<rpc::Address> listen;
  rpc::ServerSecurity security;
  // Every caller may do everything, whatever principals are stored. Only for Unix sockets in
  // a private directory, such as that of `pelab run`.
  bool admit_everybody = false;
  // Address of the pages and the JSON API (server/http/http_server.h); nullopt: they are not
  // served.
  std::optional<rpc::Address> http;
  std::vector<std::string> http_hosts;  // further host names that requests may use
  bool http_insecure = false;           // other machines may reach `http`, which has no TLS
  bool http_write = false;              // people who have the token may change sweeps there
  std::string http_token_file;          // file with that token; empty: the token file of `security`
  bool metrics_sweeps = false;          // GET /metrics has samples of single live sweeps
  // Address that answers gRPC health checks without TLS, and nothing else; nullopt: none.
  std::optional<rpc::Address> health;
  absl::Duration heartbeat = absl::Seconds(5);
  absl::Duration lease = absl::Seconds(20);
  // An attempt is lost if its worker reports nothing about it for this long; infinite: no limit.
  absl::Duration attempt_silence = absl::Hours(24);
  std::uint64_t artifact_quota = std::uint64_t{20} << 30;
  // A directory that workers see too; nullopt: DATABASE.artifacts.
  std::optional<store::SharedStore> artifact_store;
  absl::Duration artifact_grace = absl::Minutes(15);  // how long files without a reference are kept
  std::optional<backups::BackupSettings> backups;     // nullopt: it makes none by itself
  std::optional<notify::NotifySettings> notify;       // nullopt: it notifies nobody
  std::string trace_file;                             // of spans, as OTLP lines; empty: none
  absl::Duration peer_silence = absl::Minutes(1);     // how long a call may wait for its client
  std::size_t untaken_bytes = limits::kUntakenBytes;  // of all answers that clients do not take
  const Clock* clock = &SystemClock::Instance();
};

class Coordinator {
 public:
  // Locks, opens and migrates the database, rebuilds the queue from it, and starts listening. An
  // error is one clear sentence. Errors include: the file is not a pelab database, it comes from a
  // newer version, another coordinator serves it (with its address), or an address cannot be
  // listened on.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(const CoordinatorOptions& options);
  ~Coordinator();  // like Stop

  // The addresses it listens on, with the actual ports.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // Address of the pages: "http://127.0.0.1:7480". Empty if none are served.
  const std::string& http_address() const { return http_address_; }

  // Address of the health checks: "127.0.0.1:7479". Empty if there is none of their own.
  const std::string& health_address() const { return health_address_; }

  // Asks the writer's thread and the scheduler's thread for a sign of life. OK if both answer
  // within `patience`; otherwise DEADLINE_EXCEEDED, which names the one that does not answer.
  // Thread-safe; not during or after Stop.
  absl::Status CheckAlive(absl::Duration patience);

  // Ends the workers' sessions so that they connect again later, stores what is under way, and
  // empties the WAL. Takes about 2 seconds at most. Workers continue training.
  void Stop();

 private:
  struct Parts;
  explicit Coordinator(std::unique_ptr<Parts> parts);
  absl::Status Listen(const CoordinatorOptions& options);
  absl::Status ListenHttp(const CoordinatorOptions& options,
                          std::shared_ptr<rpc::TokenFile> write_token);

  std::unique_ptr<Parts> parts_;
  std::vector<std::string> addresses_;
  std::string http_address_;
  std::string health_address_;
};

}  // namespace pelab
