// pelab-server: connects the coordinator to a command line, signals and a log.
#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include <cstdio>

#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "core/base/logging.h"
#include "core/base/shutdown.h"
#include "core/base/standard_descriptors.h"
#include "server/coordinator.h"
#include "server/options.h"

namespace {

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "pelab-server: %s\n", std::string{status.message()}.c_str());
  return code;
}

// gRPC's own messages are only useful for debugging.
void LogOfGrpc(gpr_log_func_args* args) { spdlog::debug("grpc: {}", args->message); }

int Serve(const pelab::ServerOptions& options, pelab::ShutdownSignal& shutdown) {
  absl::StatusOr<std::unique_ptr<pelab::Coordinator>> coordinator =
      pelab::Coordinator::Start(options.coordinator);
  if (!coordinator.ok()) {
    return Fail(coordinator.status(), absl::IsInvalidArgument(coordinator.status()) ? 2 : 1);
  }
  std::printf("listening on %s\n", absl::StrJoin((*coordinator)->addresses(), ", ").c_str());
  if (const std::string& http = (*coordinator)->http_address(); !http.empty()) {
    std::printf("pages on %s/\n", http.c_str());
  }
  std::fflush(stdout);
  shutdown.Wait();
  spdlog::info("ending: {}", shutdown.reason());
  (*coordinator)->Stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  pelab::OpenClosedStandardDescriptors();
  pelab::ServerOptions options;
  if (const std::optional<int> exit_status = pelab::ParseCommandLine(argc, argv, options)) {
    return *exit_status;
  }
  if (const absl::Status status = pelab::SetUpLogging("pelab-server", options.log); !status.ok()) {
    return Fail(status, 2);
  }
  gpr_set_log_function(LogOfGrpc);
  // If Abseil is built for debugging, as Debian's is, it tracks the order in which gRPC takes
  // locks. With ten thousand workers that costs a tenth of the CPU time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  pelab::ShutdownSignal shutdown;
  if (options.parent_fd >= 0) {
    if (const absl::Status status = shutdown.WatchParent(options.parent_fd); !status.ok()) {
      return Fail(status, 2);
    }
  }
  return Serve(options, shutdown);
}
