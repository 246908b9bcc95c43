#include "worker/agent/run_worker.h"

#include <iostream>
#include <string>

#include "core/base/log.h"
#include "core/base/logging.h"
#include "core/base/service_notify.h"
#include "core/base/shutdown.h"
#include "core/base/standard_descriptors.h"
#include "core/base/utf8.h"
#include "worker/agent/agent.h"
#include "worker/agent/options.h"

namespace pelab::agent {
namespace {

int Complain(const absl::Status& status, int exit_code) {
  std::cerr << "pelab-worker: " << Escape(std::string(status.message())) << "\n";
  return exit_code;
}

}  // namespace

int RunWorker(int argc, char** argv) {
  OpenClosedStandardDescriptors();
  const CommandLine line = ParseCommandLine(argc, argv);
  if (!line.go_on) return line.exit_code;
  if (const absl::Status status = SetUpLogging("pelab-worker", line.options.logging);
      !status.ok()) {
    return Complain(status, 2);
  }
  const absl::StatusOr<ServiceManager> manager = ServiceManager::FromEnvironment();
  if (!manager.ok()) spdlog::warn("{}", std::string(manager.status().message()));
  ShutdownSignal shutdown;
  if (line.options.parent_fd >= 0) {
    if (const absl::Status status = shutdown.WatchParent(line.options.parent_fd); !status.ok()) {
      return Complain(status, 2);
    }
  }
  const absl::Status status = RunAgent(line.options, manager.value_or(ServiceManager()), shutdown);
  return status.ok() ? 0 : Complain(status, absl::IsInvalidArgument(status) ? 2 : 1);
}

}  // namespace pelab::agent
