#include "core/render/json.h"

#include <cmath>
#include <iterator>

#include "core/render/text.h"

namespace pelab::render {
namespace {

std::string Dump(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

void AppendQuoted(std::string_view field, std::string& out) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += field;
    return;
  }
  out += '"';
  for (std::size_t quote = field.find('"'); quote != std::string_view::npos;
       quote = field.find('"')) {
    out.append(field.substr(0, quote + 1)) += '"';
    field.remove_prefix(quote + 1);
  }
  out.append(field) += '"';
}

void AppendField(const Json& value, std::string& out) {
  if (value.is_null()) return;
  if (value.is_string()) {
    AppendQuoted(value.get_ref<const std::string&>(), out);
  } else if (value.is_number_float()) {
    AppendShortest(value.get<double>(), out);
  } else {
    AppendQuoted(Dump(value, -1), out);
  }
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

std::string CsvHeader(const std::vector<std::string>& columns) {
  std::string out;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) out += ',';
    AppendQuoted(columns[i], out);
  }
  return out += "\r\n";
}

void AppendCsv(const std::vector<std::string>& columns, const Json& row, std::string& out) {
  auto next = row.begin();  // members mostly come in the order of the columns
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) out += ',';
    const bool there = next != row.end() && next.key() == columns[i];
    const auto member = there ? next : row.find(columns[i]);
    if (member == row.end()) continue;
    AppendField(*member, out);
    next = std::next(member);
  }
  out += "\r\n";
}

std::string ToCsv(const std::vector<std::string>& columns, const Json& rows) {
  std::string out = CsvHeader(columns);
  for (const Json& row : rows) AppendCsv(columns, row, out);
  return out;
}

}  // namespace pelab::render
