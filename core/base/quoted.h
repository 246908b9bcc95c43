// Foreign text in a message, where utf8.h is too much to link (the trainer). Thread-safe.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace pelab {

// In quotation marks, at most 60 bytes, cut between characters.
inline std::string Quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::size_t end = std::min(text.size(), kLongest);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return "\"" + std::string(text.substr(0, end)) + (end < text.size() ? "…\"" : "\"");
}

}  // namespace pelab
