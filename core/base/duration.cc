#include "core/base/duration.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace pelab {
namespace {

// Largest first.
constexpr std::pair<absl::string_view, std::uint64_t> kByteUnits[] = {
    {"TiB", 1ULL << 40}, {"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}};

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text, absl::string_view what) {
  absl::Duration duration;
  // absl also accepts "0", "inf" and negative times, which are refused here. It refuses a number
  // without a unit.
  if (!absl::ParseDuration(text, &duration) || duration <= absl::ZeroDuration() ||
      duration == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid ", what, " \"", text,
                     "\"; allowed: a time above 0 with its unit, such as 500ms, 5s, 2m or 1h"));
  }
  return duration;
}

absl::StatusOr<absl::Duration> ParseDays(absl::string_view whole, absl::string_view what) {
  constexpr int kMaxDays = 36500;
  const absl::Duration day = absl::Hours(24);
  absl::string_view text = whole;
  const std::size_t end = text.find('d');
  int days = 0;
  absl::Duration rest;
  bool ok = true;
  if (end != absl::string_view::npos) {
    const absl::string_view digits = text.substr(0, end);
    ok = digits.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(digits, &days) && days <= kMaxDays;
    text.remove_prefix(end + 1);
  }
  if (end == absl::string_view::npos || !text.empty()) {
    const absl::StatusOr<absl::Duration> parsed = ParseDuration(text, what);
    ok = ok && parsed.ok();
    if (ok) rest = *parsed;
  }
  const absl::Duration duration = days * day + rest;
  if (ok && duration > absl::ZeroDuration() && duration <= kMaxDays * day) return duration;
  return absl::InvalidArgumentError(absl::StrCat(
      "invalid ", what, " \"", whole,
      "\"; allowed: a time above 0 with its unit, such as 90d, 1d12h or 6h, and at most ", kMaxDays,
      "d"));
}

absl::StatusOr<std::uint64_t> ParseByteSize(absl::string_view text, absl::string_view what) {
  absl::string_view digits(text.data(), text.size());
  std::uint64_t unit = 1;
  for (const auto& [name, bytes] : kByteUnits) {
    if (unit == 1 && absl::ConsumeSuffix(&digits, name)) unit = bytes;
  }
  constexpr std::uint64_t kMax = std::uint64_t{1} << 60;
  std::uint64_t count = 0;
  const bool plain =
      !digits.empty() && digits.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!plain || !absl::SimpleAtoi(digits, &count) || count == 0 || count > kMax / unit) {
    return absl::InvalidArgumentError(absl::StrCat("invalid ", what, " \"", text,
                                                   "\"; allowed: a whole number of bytes above 0, "
                                                   "or with a unit such as 64KiB, 256MiB or 2GiB"));
  }
  return count * unit;
}

std::string FormatByteSize(std::uint64_t bytes) {
  for (const auto& [name, unit] : kByteUnits) {
    if (bytes < unit) continue;
    if (bytes % unit == 0) return absl::StrCat(bytes / unit, name);
    return absl::StrFormat("%.2f%s", static_cast<double>(bytes) / static_cast<double>(unit), name);
  }
  return absl::StrCat(bytes, " bytes");
}

}  // namespace pelab
