#include "core/catalog/own.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "core/catalog/catalog.h"

namespace pelab::catalog {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A number as NumberToText writes it, so that each value has one spelling.
bool IsCanonicalNumber(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number) &&
         NumberToText(number) == text;
}

}  // namespace

bool IsOwnName(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  return !text.empty() && text.size() <= kLongest && IsLower(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLower(c) || IsDigit(c) || c == '_'; });
}

bool IsChoiceName(std::string_view text) {
  constexpr std::string_view kOthers[] = {"true", "false", "null", "nan", "inf", "infinity"};
  return IsOwnName(text) &&
         std::find(std::begin(kOthers), std::end(kOthers), text) == std::end(kOthers);
}

bool IsHash(std::string_view text) {
  return text.size() == kNoFile.size() && std::all_of(text.begin(), text.end(), [](char c) {
           return IsDigit(c) || (c >= 'a' && c <= 'f');
         });
}

bool IsOptionsText(std::string_view text) {
  constexpr std::size_t kLongest = 4000;
  if (text.empty()) return true;
  if (text.size() > kLongest) return false;
  std::string_view before;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view one = text.substr(at, comma - at);
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view name = one.substr(0, equals), value = one.substr(equals + 1);
    if (!IsOwnName(name) || name <= before) return false;
    const bool is_flag = value == "true" || value == "false";
    if (!is_flag && !IsChoiceName(value) && !IsCanonicalNumber(value)) return false;
    before = name;
    at = comma + 1;
  }
  return true;
}

}  // namespace pelab::catalog
