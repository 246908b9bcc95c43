#include "core/render/json.h"

#include <cmath>

#include "core/render/text.h"

namespace pelab::render {
namespace {

std::string Dump(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string Quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string Field(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return Shortest(value.get<double>());
  return Dump(value, -1);
}

}  // namespace

std::string ToJson(const Json& value, bool one_line) {
  return Dump(value, one_line ? -1 : 2) + "\n";
}

void AppendJson(double number, std::string& out) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char buffer[64];  // the size of the library's own buffer for a number
  out.append(buffer, nlohmann::detail::to_chars(buffer, buffer + sizeof(buffer), number));
}

std::string ToCsv(const std::vector<std::string>& columns, const Json& rows) {
  std::string out;
  const auto end_field = [&](std::size_t i) { out += i + 1 < columns.size() ? "," : "\r\n"; };
  for (std::size_t i = 0; i < columns.size(); ++i) {
    out += Quoted(columns[i]);
    end_field(i);
  }
  for (const Json& row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto member = row.find(columns[i]);
      if (member != row.end()) out += Quoted(Field(*member));
      end_field(i);
    }
  }
  return out;
}

}  // namespace pelab::render
