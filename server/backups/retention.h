// The rules of --keep: which scheduled backups are kept. Pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pelab::backups {

// The largest number that --keep accepts.
inline constexpr int kMostKept = 10'000;

// A backup that any of the rules keeps is kept. 0: the rule keeps none.
struct Retention {
  int newest = 0;  // the newest N
  int days = 0;    // the newest of each of the last N days (UTC) that have a backup
  int weeks = 0;   // the newest of each of the last N weeks, from Monday (UTC), that have a backup
};

// "7d,4w", "30", "5,14d": each rule at most once. INVALID_ARGUMENT names the value and the allowed
// forms.
absl::StatusOr<Retention> ParseRetention(std::string_view text);

// The backups to remove, oldest first. `times` are those of all backups, in any order. Days and
// weeks without a backup do not count, so that nothing is removed because the coordinator did not
// run for a while. The newest backup is always kept, and so are all that are later than `now`: the
// clock was wrong when they were made, or it is now.
std::vector<absl::Time> Surplus(std::vector<absl::Time> times, const Retention& keep,
                                absl::Time now);

}  // namespace pelab::backups
