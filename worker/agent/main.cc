// pelab-worker: the daemon on each host that trains.

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

namespace {

int Complain(const absl::Status& status, int exit_code) {
  std::cerr << "pelab-worker: " << pelab::Escape(std::string(status.message())) << "\n";
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  pelab::OpenClosedStandardDescriptors();
  const pelab::agent::CommandLine line = pelab::agent::ParseCommandLine(argc, argv);
  if (!line.go_on) return line.exit_code;
  if (const absl::Status status = pelab::SetUpLogging("pelab-worker", line.options.logging);
      !status.ok()) {
    return Complain(status, 2);
  }
  const absl::StatusOr<pelab::ServiceManager> manager = pelab::ServiceManager::FromEnvironment();
  if (!manager.ok()) spdlog::warn("{}", std::string(manager.status().message()));
  pelab::ShutdownSignal shutdown;
  if (line.options.parent_fd >= 0) {
    if (const absl::Status status = shutdown.WatchParent(line.options.parent_fd); !status.ok()) {
      return Complain(status, 2);
    }
  }
  const absl::Status status =
      pelab::agent::RunAgent(line.options, manager.value_or(pelab::ServiceManager()), shutdown);
  return status.ok() ? 0 : Complain(status, absl::IsInvalidArgument(status) ? 2 : 1);
}
