// `pelab run`: one sweep from submission to its results, with a coordinator and a worker brought
// along, or in one that already serves the database.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "client/document.h"
#include "client/options.h"

namespace pelab::client {

struct RunOptions {
  int priority = 0;
  bool fresh = false;
  std::optional<int> cpu_slots;
  std::optional<int> slots_per_device;
  std::optional<int> threads_per_slot;
};

// Ctrl-C (and SIGTERM) stop everything within 5 s, a second one at once; what was not finished
// stays queued in the database. Call it while the process has one thread. The exit status.
absl::StatusOr<int> RunEmbedded(const Context& context, const Document& document,
                                const RunOptions& options);

}  // namespace pelab::client
