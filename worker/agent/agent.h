// The worker daemon, put together from the other parts of this folder.
#pragma once

#include "absl/status/status.h"
#include "core/base/service_notify.h"
#include "core/base/shutdown.h"
#include "worker/agent/options.h"

namespace pelab::agent {

// Runs the daemon until `shutdown` is requested. Errors say why it could not start or go on. After
// a request it returns within 5 s, plus 8 s if it uploads last checkpoints. If something still
// hangs then, the process is ended. `manager` hears when the daemon is ready to connect and when it
// stops, and as long as the session's thread works, that it is alive.
absl::Status RunAgent(const AgentOptions& options, const ServiceManager& manager,
                      ShutdownSignal& shutdown);

}  // namespace pelab::agent
