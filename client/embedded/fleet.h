// The coordinator and the worker that `pelab run` starts. They are sibling programs, each in its
// own process group. A pipe ties them to this process: when this process ends, in whatever way,
// they end too.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/process.h"
#include "core/base/temporary_folder.h"
#include "core/base/unique_fd.h"

namespace pelab::client {

struct FleetOptions {
  std::string database;
  std::optional<int> cpu_slots;  // passed to the worker if set, like the next two
  std::optional<int> slots_per_device;
  std::optional<int> threads_per_slot;

  std::string ServerLog() const { return database + ".server.log"; }
  std::string WorkerLog() const { return database + ".worker.log"; }
  std::string WorkDir() const { return database + ".worker"; }
};

// Kill may be called from any thread; all other functions from one thread only.
class Fleet {
 public:
  // Starts the coordinator on a Unix socket in a new temporary directory. The directory of the
  // database is not used, because a socket's path has at most 107 bytes.
  static absl::StatusOr<std::unique_ptr<Fleet>> StartServer(const FleetOptions& options);
  ~Fleet();
  Fleet(const Fleet&) = delete;

  const std::string& address() const { return address_; }

  // OK while the coordinator runs; INTERNAL with the last lines of its log if it has ended.
  absl::Status CheckServer();
  absl::Status StartWorker();
  bool has_worker() const { return worker_.has_value(); }
  // Like CheckServer, for the worker. OK if no worker was started.
  absl::Status CheckWorker();
  // A file descriptor that becomes readable when the process ends; -1 if the process was not
  // started.
  int worker_pidfd() const { return worker_ ? worker_->pidfd() : -1; }
  int server_pidfd() const { return server_ ? server_->pidfd() : -1; }

  // Stops the worker first, so that the worker can tell the coordinator which jobs it gives back.
  // Then stops the coordinator. Sends SIGKILL to a process that outlasts its grace.
  void Stop(absl::Duration worker_grace, absl::Duration server_grace);
  // Sends SIGKILL to both. Their trainers end on their own when the worker is gone.
  void Kill();

 private:
  explicit Fleet(FleetOptions options) : options_(std::move(options)) {}
  absl::StatusOr<Process> Spawn(const std::string& program, std::vector<std::string> arguments,
                                const std::string& log);

  FleetOptions options_;
  std::optional<TemporaryFolder> socket_directory_;
  std::string address_;
  Pipe alive_;        // nobody writes to it; end of file tells the children that this process has
                      // ended
  std::mutex mutex_;  // guards worker_ against Kill from another thread
  std::optional<Process> server_;
  std::optional<Process> worker_;
};

}  // namespace pelab::client
