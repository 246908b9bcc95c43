// Durations and byte sizes given on command lines. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace pelab {

// "500ms", "5s", "1.5h", "2m", "1h30m": a positive time with a unit (ms, s, m, h). INVALID_ARGUMENT
// names `what` (the flag), the value and the allowed forms.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text, absl::string_view what);

// The same, with days of 24 hours: "90d", "1d12h", "6h"; at most 36500 days.
absl::StatusOr<absl::Duration> ParseDays(absl::string_view text, absl::string_view what);

// "256MiB", "2GiB", "64KiB", "1000000": a size in bytes, from 1 byte to 2^60. Errors as for
// ParseDuration.
absl::StatusOr<std::uint64_t> ParseByteSize(absl::string_view text, absl::string_view what);

// "900GiB", "11.77GiB" (rounded), "1000 bytes".
std::string FormatByteSize(std::uint64_t bytes);

}  // namespace pelab
