// The end of a log as JSON. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "core/render/json.h"
#include "pelab/v1/results.pb.h"

namespace pelab::http {

inline constexpr std::int64_t kDefaultTail = 64 << 10;   // bytes
inline constexpr std::int64_t kLargestTail = 256 << 10;  // what is kept of an attempt

// {"attempt", "parts": [{"offset", "text"}], "next_offset"}: the last `tail` bytes of `parts`, which
// are in order and start at `offset` or later. What follows on each other is one part: where there
// are two, the middle was dropped. Bytes that are not UTF-8 become U+FFFD; a character of which the
// last bytes have not come is left for the next request, from `next_offset` on.
render::Json LogJson(const std::vector<v1::LogPart>& parts, std::uint64_t offset,
                     std::uint64_t tail);

}  // namespace pelab::http
