// The daemon: everything below put together.
#pragma once

#include "absl/status/status.h"
#include "core/base/shutdown.h"
#include "worker/agent/options.h"

namespace pelab::agent {

// Runs until `shutdown` is requested. Errors say why it could not start or go on. After a request it
// returns within 5 s whatever happens, and 8 more where last checkpoints go to the coordinator: what
// still hangs then is cut off by ending the process.
absl::Status RunAgent(const AgentOptions& options, ShutdownSignal& shutdown);

}  // namespace pelab::agent
