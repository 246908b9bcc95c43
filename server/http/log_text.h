// The end of a log as JSON. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "core/render/json.h"
#include "pelab/v1/results.pb.h"

namespace pelab::http {

inline constexpr std::int64_t kDefaultTail = 64 << 10;   // bytes
inline constexpr std::int64_t kLargestTail = 256 << 10;  // bytes that are kept of an attempt's log

// Returns {"attempt", "parts": [{"offset", "text"}], "next_offset"} with the last `tail` bytes of
// `parts`, which are in order and start at `offset` or later. Bytes without a gap form one part;
// two parts mean that the middle of the log was dropped. Bytes that are not UTF-8 become U+FFFD. If
// the last bytes of a character have not come yet, the character is left for the next request,
// which starts at `next_offset`.
render::Json LogJson(const std::vector<v1::LogPart>& parts, std::uint64_t offset,
                     std::uint64_t tail);

}  // namespace pelab::http
