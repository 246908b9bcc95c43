// One history: a coordinator, a few workers, people who submit, cancel and analyse, and faults, all
// drawn from one seed. For a while anything may happen; then the faults end, and everything has to
// come to its end.
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
  bool print = false;  // every step
};

struct HistoryResult {
  std::optional<std::string> violation;
  std::uint64_t hash = 0;  // of everything that happened
  std::uint64_t faults = 0;
  Ledger::Counts counts;
  absl::Duration lasted;  // virtual
};

// A pure function of the options.
HistoryResult RunHistory(const HistoryOptions& options);

}  // namespace pelab::sim
