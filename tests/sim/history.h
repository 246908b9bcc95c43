// One history: a coordinator, a few workers, people who submit, cancel and analyze, and faults, all
// drawn from one seed. In some histories one more worker lies, a client asks for what must be
// refused, workers are said to be gone, some of them are of the release before and are upgraded,
// one or two settlers settle a claim sheet, or the coordinator's limits are drawn too. For a while
// anything may happen. Then the faults end, and everything has to finish.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "tests/sim/journal.h"
#include "tests/sim/ledger.h"

namespace pelab::sim {

struct HistoryOptions {
  std::uint64_t seed = 0;
  Planted planted;
  bool print = false;  // print every step
};

struct HistoryResult {
  std::optional<std::string> violation;
  std::uint64_t hash = 0;  // hash of everything that happened
  std::uint64_t faults = 0;
  Ledger::Counts counts;
  absl::Duration lasted;  // virtual time
};

// Runs one history. A pure function of the options.
HistoryResult RunHistory(const HistoryOptions& options);

}  // namespace pelab::sim
