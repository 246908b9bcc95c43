// A command that starts its own coordinator, or joins one that already serves the database.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/embedded/fleet.h"
#include "client/options/options.h"
#include "client/source/data_source.h"
#include "core/base/shutdown.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

// Options of the worker that this command starts.
struct WorkerOptions {
  std::optional<int> cpu_slots;
  std::optional<int> slots_per_device;
  std::optional<int> threads_per_slot;
};
// Adds --cpu-slots, --slots-per-device and --threads-per-slot.
void AddWorkerFlags(CLI::App* app, WorkerOptions& options);

// Construct and run a session while the process has a single thread. Ctrl-C and SIGTERM end this
// command and the programs that it started within 5 s; a second signal kills them at once. A
// coordinator that it joined goes on. Unfinished jobs stay queued in the database.
class EmbeddedSession {
 public:
  EmbeddedSession(const Context& context, const WorkerOptions& worker);
  virtual ~EmbeddedSession();
  EmbeddedSession(const EmbeddedSession&) = delete;

  // Joins the coordinator of --db, or starts one, and calls Work. Returns the exit status.
  absl::StatusOr<int> Run();

 protected:
  // The command's own work; returns the exit status. If a joined coordinator ends, Run joins the
  // next one or starts one, and calls Work again. If only the connection was lost, Run connects
  // again and calls Work again. So repeating its requests must be harmless.
  virtual absl::StatusOr<int> Work(Coordinator& coordinator) = 0;
  // Messages after an interrupt. GoOnHint says how to continue later. JoinedHint is for a joined
  // coordinator, which continues without this command.
  virtual std::string GoOnHint() const = 0;
  virtual std::string JoinedHint() const = 0;

  const Context& context() const { return context_; }
  bool interrupted() const { return shutdown_.requested(); }
  // Starts the worker if this command started the coordinator. Does nothing for a joined
  // coordinator.
  absl::Status EnsureWorker();
  bool owns_coordinator() const { return fleet_ != nullptr; }
  // Calls `something`, which must return when its work is done or its canceller is cancelled. If
  // the coordinator or the worker of this command ended meanwhile, returns an error that says why.
  absl::Status Follow(const std::function<absl::Status(Canceller&)>& something);
  // Stops the worker and the coordinator if this command started them.
  void Stop();

 private:
  void OnInterrupt(int count);
  void Hold(std::unique_ptr<Fleet> fleet);
  absl::StatusOr<std::unique_ptr<Coordinator>> Attach();
  absl::StatusOr<std::unique_ptr<Coordinator>> StartOwn();
  absl::StatusOr<std::unique_ptr<Coordinator>> ConnectToOwn(absl::Duration patience);
  int Interrupted();

  const Context& context_;
  const WorkerOptions worker_;
  Canceller canceller_;
  std::mutex mutex_;
  Fleet* fleet_for_kill_ = nullptr;
  ShutdownSignal shutdown_;  // must be constructed before any thread starts; its callback uses the
                             // members above
  std::unique_ptr<Fleet> fleet_;
};

}  // namespace pelab::client
