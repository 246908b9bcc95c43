// Concatenating text. Abseil may be built with its own string_view (Debian 12), and absl::StrCat
// then accepts only that type; these functions take std::string_view everywhere.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace pelab {
namespace text_internal {

inline void Append(std::string& out, std::string_view piece) { out += piece; }
template <std::integral Number>
void Append(std::string& out, Number number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

}  // namespace text_internal

// Concatenates texts and integers.
template <typename... Pieces>
std::string Concat(const Pieces&... pieces) {
  std::string out;
  (text_internal::Append(out, pieces), ...);
  return out;
}

template <typename Range>
std::string Join(const Range& range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& piece : range) {
    if (!first) out += separator;
    first = false;
    text_internal::Append(out, piece);
  }
  return out;
}

}  // namespace pelab
