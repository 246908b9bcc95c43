// The rules for names of sweeps. Pure: thread-safe.
#pragma once

#include <algorithm>
#include <string_view>

namespace pelab::experiment {

inline constexpr std::string_view kSweepNameRule =
    "1 to 100 letters, digits, \".\", \"_\" or \"-\"";
inline constexpr std::string_view kNumberNameRule = "a name that is not digits alone";

inline bool IsSweepName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 100 && std::all_of(name.begin(), name.end(), allowed);
}

// Whether the name consists of digits only. Sweeps also have numbers, so `pelab cancel 2` would be
// ambiguous; only sweeps stored by earlier versions have such names.
inline bool IsNumberName(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace pelab::experiment
