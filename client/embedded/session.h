// A command with a coordinator of its own, or in one that already serves the database.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/embedded/fleet.h"
#include "client/options.h"
#include "client/source/data_source.h"
#include "core/base/shutdown.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

// How a worker that is brought along runs jobs.
struct WorkerOptions {
  std::optional<int> cpu_slots;
  std::optional<int> slots_per_device;
  std::optional<int> threads_per_slot;
};
// Adds --cpu-slots, --slots-per-device and --threads-per-slot.
void AddWorkerFlags(CLI::App* app, WorkerOptions& options);

// Make and run it while the process has one thread. Ctrl-C (and SIGTERM) stop everything within
// 5 s, a second one at once; what was not finished stays queued in the database.
class EmbeddedSession {
 public:
  EmbeddedSession(const Context& context, const WorkerOptions& worker);
  virtual ~EmbeddedSession();
  EmbeddedSession(const EmbeddedSession&) = delete;

  // Attaches to the coordinator of --db, or starts one, and works. The exit status.
  absl::StatusOr<int> Run();

 protected:
  // What the command does. Called again, with another coordinator, where one that was only joined
  // has ended: asking twice must do no harm.
  virtual absl::StatusOr<int> Work(Coordinator& coordinator) = 0;
  // What to say after an interrupt: how to go on, and, of a coordinator that was joined, that it
  // goes on by itself.
  virtual std::string GoOnHint() const = 0;
  virtual std::string JoinedHint() const = 0;

  const Context& context() const { return context_; }
  bool interrupted() const { return shutdown_.requested(); }
  // Starts the worker where the coordinator is this command's own.
  absl::Status EnsureWorker();
  bool owns_coordinator() const { return fleet_ != nullptr; }
  // Runs something that lasts until its canceller is cancelled or it is done; says why where the
  // coordinator or the worker that were brought along have ended meanwhile.
  absl::Status Follow(const std::function<absl::Status(Canceller&)>& something);
  // Ends what was brought along.
  void Stop();

 private:
  void OnInterrupt(int count);
  void Hold(std::unique_ptr<Fleet> fleet);
  absl::StatusOr<std::unique_ptr<Coordinator>> Attach();
  absl::StatusOr<std::unique_ptr<Coordinator>> StartOwn();
  int Interrupted();

  const Context& context_;
  const WorkerOptions worker_;
  Canceller canceller_;
  std::mutex mutex_;
  Fleet* fleet_for_kill_ = nullptr;
  ShutdownSignal shutdown_;  // before anything that starts threads; its callback uses what is above
  std::unique_ptr<Fleet> fleet_;
};

}  // namespace pelab::client
