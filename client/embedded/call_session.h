// Calls of a coordinator for a database that nobody serves: starts one, without a worker.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/embedded/session.h"
#include "client/options/options.h"

namespace pelab::client {

// `call` returns when it is done or the canceller is cancelled, and may be called again with
// another coordinator. CANCELLED with the text `stopped` after Ctrl-C.
absl::Status CallEmbedded(const Context& context, const std::string& stopped,
                          const std::function<absl::Status(Coordinator&, Canceller&)>& call);

enum class Asked { kCoordinator, kOwnCoordinator };

// Calls the coordinator that FindCoordinator finds, or else one that is started for the call alone,
// if there is a database file. Says which. UNAVAILABLE if there is neither.
absl::StatusOr<Asked> CallOnce(const Context& context,
                               const std::function<absl::Status(Coordinator&)>& call);

}  // namespace pelab::client
