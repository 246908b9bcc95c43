// Plausibility checks of the counts that trainers report. Pure functions.
#pragma once

#include <cstdint>

namespace pelab::store {

inline bool IsShare(std::int64_t part, std::int64_t whole) { return part >= 0 && part <= whole; }

// Whether `correct` of `total` examples is possible.
inline bool IsScore(std::int64_t correct, std::int64_t total) {
  return total > 0 && IsShare(correct, total);
}

}  // namespace pelab::store
