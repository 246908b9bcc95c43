#include "client/options/times.h"

#include <algorithm>

#include "core/base/duration.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::client {

absl::StatusOr<std::int64_t> ParseExpiry(const std::string& text, absl::Time now) {
  if (text == "never") return 0;
  const absl::StatusOr<absl::Duration> duration = ParseDays(text, "--expires");
  if (duration.ok()) return absl::ToUnixMillis(now + *duration);
  return absl::InvalidArgumentError(Concat(std::string(duration.status().message()), ", or never"));
}

absl::StatusOr<std::int64_t> ParseSince(const std::string& text, absl::Time now) {
  absl::Time time;
  std::string ignored;
  const bool parsed =
      absl::ParseTime("%Y-%m-%d", text, absl::UTCTimeZone(), &time, &ignored) ||
      absl::ParseTime(absl::RFC3339_full, text, absl::UTCTimeZone(), &time, &ignored);
  // absl also accepts "infinite-past", which is refused here.
  if (parsed && time != absl::InfinitePast() && time != absl::InfiniteFuture()) {
    return std::max<std::int64_t>(0, absl::ToUnixMillis(time));
  }
  const absl::StatusOr<absl::Duration> duration = ParseDays(text, "--since");
  if (duration.ok()) return std::max<std::int64_t>(0, absl::ToUnixMillis(now - *duration));
  return absl::InvalidArgumentError(
      Concat("invalid --since \"", text,
             "\"; allowed: a time back from now such as 1d or 2h30m, a date such as 2026-11-01, or "
             "a time such as 2026-11-01T08:00:00Z"));
}

absl::StatusOr<absl::Duration> ParseBudget(const std::string& text) {
  if (text == "0" || text == "0s" || text == "0m" || text == "0h") return absl::ZeroDuration();
  return ParseDuration(text, "--budget");
}

absl::StatusOr<absl::Time> ParseUntil(const std::string& text, absl::Time now,
                                      const absl::TimeZone& zone) {
  absl::Time time;
  std::string ignored;
  if (absl::ParseTime(absl::RFC3339_full, text, absl::UTCTimeZone(), &time, &ignored) &&
      time != absl::InfinitePast() && time != absl::InfiniteFuture()) {
    return time;
  }
  const absl::CivilDay today = absl::ToCivilDay(now, zone);
  for (const absl::CivilDay day : {today, today + 1}) {
    if (!absl::ParseTime("%Y-%m-%d %H:%M", Concat(absl::FormatCivilTime(day), " ", text), zone,
                         &time, &ignored)) {
      break;
    }
    if (time > now) return time;
  }
  return absl::InvalidArgumentError(
      Concat("invalid --until \"", text,
             "\"; allowed: a time of day such as 23:00, or a time such as 2026-11-01T08:00:00Z"));
}

}  // namespace pelab::client
