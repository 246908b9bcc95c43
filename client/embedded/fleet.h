// The coordinator and the worker that `pelab run` brings along: sibling programs in process groups
// of their own, tied to this one by a pipe, so that they end when it does, however it ends.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/process.h"
#include "core/base/unique_fd.h"

namespace pelab::client {

struct FleetOptions {
  std::string database;
  std::optional<int> cpu_slots;  // passed on to the worker where set
  std::optional<int> slots_per_device;
  std::optional<int> threads_per_slot;

  std::string ServerLog() const { return database + ".server.log"; }
  std::string WorkerLog() const { return database + ".worker.log"; }
  std::string WorkDir() const { return database + ".worker"; }
};

// Kill may be called from any thread; everything else from one.
class Fleet {
 public:
  // Starts the coordinator on a Unix socket in a temporary directory of its own (socket paths have
  // at most 107 bytes).
  static absl::StatusOr<std::unique_ptr<Fleet>> StartServer(const FleetOptions& options);
  ~Fleet();
  Fleet(const Fleet&) = delete;

  const std::string& address() const { return address_; }

  // INTERNAL with the end of its log where the coordinator has ended; OK while it runs.
  absl::Status CheckServer();
  absl::Status StartWorker();
  bool has_worker() const { return worker_.has_value(); }
  // The same for the worker; OK where none was started.
  absl::Status CheckWorker();
  // Readable once the worker, or the coordinator, has ended. -1: none.
  int worker_pidfd() const { return worker_ ? worker_->pidfd() : -1; }
  int server_pidfd() const { return server_ ? server_->pidfd() : -1; }

  // Worker first, so that it can say what it gives back; then the coordinator. SIGKILL where the
  // graces run out.
  void Stop(absl::Duration worker_grace, absl::Duration server_grace);
  // SIGKILL to both at once. Their trainers end by themselves when their agent is gone.
  void Kill();

 private:
  explicit Fleet(FleetOptions options) : options_(std::move(options)) {}
  absl::StatusOr<Process> Spawn(const std::string& program, std::vector<std::string> arguments,
                                const std::string& log);

  FleetOptions options_;
  std::string socket_directory_;
  std::string address_;
  Pipe alive_;        // nobody writes; its end tells the children that this process is gone
  std::mutex mutex_;  // over the two processes' being there, for Kill
  std::optional<Process> server_;
  std::optional<Process> worker_;
};

}  // namespace pelab::client
