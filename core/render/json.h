// Writes JSON and CSV. Doubles read back bit for bit. Pure functions: thread-safe.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pelab::render {

using Json = nlohmann::ordered_json;

// The value, or null if there is none.
template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// The number, or null if it is not finite.
inline Json FiniteOrNull(double number) {
  return std::isfinite(number) ? Json(number) : Json(nullptr);
}

// One JSON value and a newline, either indented for people or on one line (JSON Lines). Bytes that
// are not UTF-8 become U+FFFD; numbers that JSON lacks (NaN, infinities) become null.
std::string ToJson(const Json& value, bool one_line = false);

// Appends a number exactly as ToJson writes it, but many times faster.
void AppendJson(double number, std::string& out);

// RFC 4180 CSV with CRLF line ends: a header line with `columns`, then one line per object of the
// array `rows` with its members of these names. Null and missing members become empty fields;
// arrays and objects become their JSON text.
std::string ToCsv(const std::vector<std::string>& columns, const Json& rows);
// The same in parts: the header line, and the line of one object.
std::string CsvHeader(const std::vector<std::string>& columns);
void AppendCsv(const std::vector<std::string>& columns, const Json& row, std::string& out);

}  // namespace pelab::render
