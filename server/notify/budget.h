// Budgets that are spent, for notifications.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pelab::notify {

// A settling of claims that its budget has stopped.
struct SpentBudget {
  std::string sheet;  // its name
  std::int64_t sheet_id = 0;
  std::string owner;
  std::optional<std::int64_t> sweep_id;  // nullopt: no round was begun
  std::int64_t rounds = 0;               // that have ended
  // Claims after the last of these rounds.
  std::int64_t decided = 0;
  std::int64_t open = 0;
  std::int64_t given_up = 0;
  std::string stopped_by;  // v1::AdvanceRequest::stopped_by
};

// A principal that has used its GPU seconds, so that none of its jobs starts any more.
struct SpentGpuSeconds {
  std::string principal;
  double used = 0;
  double budget = 0;
};

}  // namespace pelab::notify
