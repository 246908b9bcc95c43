// Points in time on the command line. Pure functions: thread-safe. INVALID_ARGUMENT names the flag,
// the value and what is allowed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pelab::client {

// --expires: "90d" or "12h" from `now` on, or "never". Unix time in milliseconds; 0 for never.
absl::StatusOr<std::int64_t> ParseExpiry(const std::string& text, absl::Time now);

// --since: "1d" or "2h30m" before `now`, or a date or a time in UTC ("2026-11-01",
// "2026-11-01T08:00:00Z"). Unix time in milliseconds.
absl::StatusOr<std::int64_t> ParseSince(const std::string& text, absl::Time now);

// --budget: "3h" or "90m". "0" is a budget of zero, which begins no round.
absl::StatusOr<absl::Duration> ParseBudget(const std::string& text);

// --until: a time of day, "23:00", the next one after `now` in `zone`; or a time in UTC,
// "2026-11-01T08:00:00Z".
absl::StatusOr<absl::Time> ParseUntil(const std::string& text, absl::Time now,
                                      const absl::TimeZone& zone);

}  // namespace pelab::client
