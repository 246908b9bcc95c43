#include "server/backups/retention.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"

namespace pelab::backups {
namespace {

absl::Status Refuse(std::string_view text) {
  return absl::InvalidArgumentError(Concat(
      "invalid --keep \"", Shorten(text, 80),
      "\"; allowed: a number of backups (30), of days (7d) or of weeks (4w), each from 1 to ",
      kMostKept, ", or several of these with commas between them: 7d,4w"));
}

// Sets the member that the rule is for. False if it is no rule, or the second of its kind.
bool ReadRule(std::string_view rule, Retention& keep) {
  int* kind = &keep.newest;
  if (!rule.empty() && (rule.back() == 'd' || rule.back() == 'w')) {
    kind = rule.back() == 'd' ? &keep.days : &keep.weeks;
    rule.remove_suffix(1);
  }
  int number = 0;
  if (rule.empty() || rule.find_first_not_of("0123456789") != std::string_view::npos) return false;
  if (!absl::SimpleAtoi(absl::string_view(rule.data(), rule.size()), &number)) return false;
  if (number < 1 || number > kMostKept || *kind != 0) return false;
  *kind = number;
  return true;
}

std::int64_t DayOf(absl::Time time) {
  return absl::ToInt64Hours(absl::Floor(time - absl::UnixEpoch(), absl::Hours(24))) / 24;
}

// 1970-01-01 was a Thursday. The weeks before it have negative numbers.
std::int64_t WeekOf(absl::Time time) {
  const std::int64_t from_monday = DayOf(time) + 3;
  return from_monday >= 0 ? from_monday / 7 : (from_monday - 6) / 7;
}

// Counts days or weeks, seen from the newest backup to the oldest.
class Periods {
 public:
  explicit Periods(int left) : left_(left) {}
  // Whether the backup is the newest of its period, and the period is one of the last.
  bool Keeps(std::int64_t period) {
    if (period == last_) return false;
    last_ = period;
    return left_-- > 0;
  }

 private:
  std::int64_t left_;
  std::int64_t last_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace

absl::StatusOr<Retention> ParseRetention(std::string_view text) {
  Retention keep;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    if (!ReadRule(rest.substr(0, comma), keep)) return Refuse(text);
    if (comma == std::string_view::npos) return keep;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<absl::Time> Surplus(std::vector<absl::Time> times, const Retention& keep,
                                absl::Time now) {
  std::erase_if(times, [now](absl::Time time) { return time > now; });
  std::sort(times.begin(), times.end(), std::greater<>());
  Periods newest(std::max(keep.newest, 1));
  Periods days(keep.days);
  Periods weeks(keep.weeks);
  std::vector<absl::Time> surplus;
  for (std::size_t i = 0; i < times.size(); ++i) {
    // Each rule sees every backup, so that it counts the periods that another one keeps.
    const bool by_number = newest.Keeps(static_cast<std::int64_t>(i));
    const bool by_day = days.Keeps(DayOf(times[i]));
    const bool by_week = weeks.Keeps(WeekOf(times[i]));
    if (!by_number && !by_day && !by_week) surplus.push_back(times[i]);
  }
  std::reverse(surplus.begin(), surplus.end());
  return surplus;
}

}  // namespace pelab::backups
