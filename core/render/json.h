// JSON and CSV. Doubles are written so that they read back bit for bit. Pure functions:
// thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pelab::render {

using Json = nlohmann::ordered_json;

// null where there is no value.
template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// One JSON value and a newline; indented for people, or on one line (JSON Lines). Bytes that are
// not UTF-8 become U+FFFD; numbers that JSON lacks (NaN, infinities) become null.
std::string ToJson(const Json& value, bool one_line = false);

// A number as ToJson writes it, many times as fast as by way of a value.
void AppendJson(double number, std::string& out);

// RFC 4180 with CRLF line ends: a header line with `columns`, then for every object of the array
// `rows` its members of these names. null and missing members are empty fields; arrays and objects
// are their JSON text.
std::string ToCsv(const std::vector<std::string>& columns, const Json& rows);

}  // namespace pelab::render
