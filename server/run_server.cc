#include "server/run_server.h"

#include <grpc/support/log.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "core/base/log.h"
#include "core/base/logging.h"
#include "core/base/mutex.h"
#include "core/base/service_notify.h"
#include "core/base/shutdown.h"
#include "core/base/standard_descriptors.h"
#include "core/base/utf8.h"
#include "server/coordinator.h"
#include "server/options.h"

namespace pelab {
namespace {

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "pelab-server: %s\n", Escape(std::string(status.message())).c_str());
  return code;
}

void WarnIfFailed(const absl::Status& status) {
  if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
}

// gRPC's own messages are only useful for debugging.
void LogOfGrpc(gpr_log_func_args* args) { spdlog::debug("grpc: {}", args->message); }

absl::Status NoThread(const std::string& when, const std::system_error& error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot start a thread", when, ": ", error.what(), " (ulimit -u, TasksMax=)"));
}

// Threads that the coordinator has before its first connection, and a few more.
constexpr int kThreads = 32;

// RESOURCE_EXHAUSTED if the system does not give them. gRPC would end the process without a word.
absl::Status CheckThreads() {
  Notification all_there;
  std::vector<std::thread> threads;
  absl::Status status;
  try {
    while (threads.size() < kThreads) threads.emplace_back([&] { all_there.Wait(); });
  } catch (const std::system_error& error) {
    status = NoThread(absl::StrCat(", after ", threads.size(), " of ", kThreads), error);
  }
  all_there.Notify();
  for (std::thread& thread : threads) thread.join();
  return status;
}

// Others may have taken the threads meanwhile.
absl::StatusOr<std::unique_ptr<Coordinator>> Start(const CoordinatorOptions& options) {
  try {
    return Coordinator::Start(options);
  } catch (const std::system_error& error) {
    return NoThread("", error);
  }
}

// Waits for a request to end. Meanwhile the service manager hears that the threads work.
void Wait(Coordinator& coordinator, const ServiceManager& manager, const ShutdownSignal& shutdown) {
  const Watchdog watchdog(manager, [&coordinator](absl::Duration patience) {
    return coordinator.CheckAlive(patience);
  });
  shutdown.Wait();
}

int Serve(const ServerOptions& options, const ServiceManager& manager, ShutdownSignal& shutdown) {
  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = Start(options.coordinator);
  if (!coordinator.ok()) {
    return Fail(coordinator.status(), absl::IsInvalidArgument(coordinator.status()) ? 2 : 1);
  }
  const std::string listening =
      absl::StrCat("listening on ", absl::StrJoin((*coordinator)->addresses(), ", "));
  std::printf("%s\n", listening.c_str());
  if (const std::string& http = (*coordinator)->http_address(); !http.empty()) {
    std::printf("pages on %s/\n", http.c_str());
  }
  if (const std::string& health = (*coordinator)->health_address(); !health.empty()) {
    std::printf("health checks on %s\n", health.c_str());
  }
  std::fflush(stdout);
  WarnIfFailed(manager.Ready(listening));
  Wait(**coordinator, manager, shutdown);
  spdlog::info("ending: {}", shutdown.reason());
  WarnIfFailed(manager.Stopping(absl::StrCat("ending: ", shutdown.reason())));
  (*coordinator)->Stop();
  return 0;
}

}  // namespace

int RunServer(int argc, char** argv) {
  OpenClosedStandardDescriptors();
  const std::uint64_t descriptors = RaiseDescriptorLimit();
  ServerOptions options;
  if (const std::optional<int> exit_status = ParseCommandLine(argc, argv, options)) {
    return *exit_status;
  }
  // New files are this user's alone: the database has the tokens of attempts, and hashes of others.
  // Workers, which may be other users, read the files in a shared artifact store.
  const mode_t given = umask(S_IRWXG | S_IRWXO);
  if (options.coordinator.artifact_store) options.coordinator.artifact_store->umask = given;
  if (const absl::Status status = SetUpLogging("pelab-server", options.log); !status.ok()) {
    return Fail(status, 2);
  }
  const absl::StatusOr<ServiceManager> manager = ServiceManager::FromEnvironment();
  WarnIfFailed(manager.status());
  spdlog::info("{} files and connections may be open at once", descriptors);
  gpr_set_log_function(LogOfGrpc);
  // If Abseil is built for debugging, as Debian's is, it tracks the order in which gRPC takes
  // locks. With ten thousand workers that costs a tenth of the CPU time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // SQLite would count its memory under a lock at every allocation, and nobody asks for the count.
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  if (const absl::Status status = CheckThreads(); !status.ok()) return Fail(status, 1);
  ShutdownSignal shutdown;
  if (options.parent_fd >= 0) {
    if (const absl::Status status = shutdown.WatchParent(options.parent_fd); !status.ok()) {
      return Fail(status, 2);
    }
  }
  return Serve(options, manager.value_or(ServiceManager()), shutdown);
}

}  // namespace pelab
