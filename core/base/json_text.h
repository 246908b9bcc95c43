// The one way from text to JSON. Whoever wrote the text, reading it, copying what was read, writing
// it and dropping it take bounded memory and stack: nlohmann's values are copied and written by
// recursion. Pure functions: thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace pelab {

inline constexpr int kMaxJsonDepth = 64;                   // of lists and objects in each other
inline constexpr std::size_t kMaxJsonBytes = 16ULL << 20;  // of one text: as long as a message

// "is nested more than 64 deep", "has 20000000 bytes; at most 16777216 are allowed"; empty where the
// text is within the limits. It may not be JSON nevertheless.
std::string WhyNotBounded(std::string_view text);

// The value, or a discarded one (is_discarded(), and is_object() and the like are false) where the
// text is not exactly one JSON value within the limits. Never throws.
template <typename Json = nlohmann::json>
Json ParseJson(std::string_view text) {
  if (!WhyNotBounded(text).empty()) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

// As ParseJson, for what is shown beside other things: null where the text cannot be read.
template <typename Json = nlohmann::json>
Json ParseJsonOrNull(std::string_view text) {
  Json value = ParseJson<Json>(text);
  return value.is_discarded() ? Json(nullptr) : value;
}

// Whether the text is one JSON object, or any JSON value, within the limits.
bool IsJsonObject(std::string_view text);
bool IsJson(std::string_view text);

}  // namespace pelab
