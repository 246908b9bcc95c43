// The only way from text to JSON in this project. Nlohmann's values are copied, written and
// destroyed by recursion, so ParseJson limits size and depth. The memory and stack needed are then
// bounded, even if the text is hostile. Pure functions: thread-safe.
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pelab {

inline constexpr int kMaxJsonDepth = 64;                   // maximum nesting of lists and objects
inline constexpr std::size_t kMaxJsonBytes = 16ULL << 20;  // of one text; as rpc::kMaxMessageBytes

// "is nested more than 64 deep", "has 20000000 bytes; at most 16777216 are allowed", "begins with a
// byte order mark", "holds a NUL byte"; empty if the text is within the limits. A text within the
// limits may still be invalid JSON.
std::string WhyNotBounded(std::string_view text);

// Parses the text. The result is a discarded value (is_discarded() is true; is_object() and the
// like are false) unless the text is exactly one JSON value within the limits. Never throws.
// Json: nlohmann::json or nlohmann::ordered_json, whose parsers are compiled once, in json_text.cc.
template <typename Json = nlohmann::json>
Json ParseJson(std::string_view text);

// Like ParseJson, but null if the text cannot be read. For one value within a larger answer.
template <typename Json = nlohmann::json>
Json ParseJsonOrNull(std::string_view text);

// The value if it is an integer that fits T; otherwise nullopt. 1.0 and 1e3 are no integers.
// (Nlohmann's get<T> converts every number: 1.5 becomes 1, and 2^64 - 1 becomes -1.)
template <std::integral T, typename Json>
std::optional<T> IntegerOf(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<std::uint64_t>();
    return std::in_range<T>(number) ? std::optional<T>(static_cast<T>(number)) : std::nullopt;
  }
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.template get<std::int64_t>();
  return std::in_range<T>(number) ? std::optional<T>(static_cast<T>(number)) : std::nullopt;
}

// Whether the text is one JSON object, or any one JSON value, within the limits.
bool IsJsonObject(std::string_view text);
bool IsJson(std::string_view text);

}  // namespace pelab
