#include "core/base/json_text.h"

#include <algorithm>

namespace pelab {
namespace {

// The maximum nesting of lists and objects. Counts brackets outside strings. This is exact up to
// the first syntax error, which is as far as a parser gets.
int DepthOf(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

std::string WhyNotBounded(std::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return "has " + std::to_string(text.size()) + " bytes; at most " +
           std::to_string(kMaxJsonBytes) + " are allowed";
  }
  // Nlohmann skips a byte order mark and reads up to a NUL byte. SQLite's JSON functions, which
  // read stored texts too, accept neither.
  if (text.starts_with("\xEF\xBB\xBF")) return "begins with a byte order mark";
  if (text.find('\0') != std::string_view::npos) return "holds a NUL byte";
  if (DepthOf(text) > kMaxJsonDepth) {
    return "is nested more than " + std::to_string(kMaxJsonDepth) + " deep";
  }
  return "";
}

template <typename Json>
Json ParseJson(std::string_view text) {
  if (!WhyNotBounded(text).empty()) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

template <typename Json>
Json ParseJsonOrNull(std::string_view text) {
  Json value = ParseJson<Json>(text);
  return value.is_discarded() ? Json(nullptr) : value;
}

template nlohmann::json ParseJson(std::string_view text);
template nlohmann::ordered_json ParseJson(std::string_view text);
template nlohmann::json ParseJsonOrNull(std::string_view text);
template nlohmann::ordered_json ParseJsonOrNull(std::string_view text);

bool IsJsonObject(std::string_view text) { return ParseJson(text).is_object(); }

bool IsJson(std::string_view text) {
  return WhyNotBounded(text).empty() && nlohmann::json::accept(text.begin(), text.end());
}

}  // namespace pelab
