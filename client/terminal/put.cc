#include "client/terminal/put.h"

namespace pelab::client {
namespace {

using render::Json;

void PutLines(const Context& context, const Json& rows) {
  for (const Json& row : rows) context.out(render::ToJson(row, /*one_line=*/true));
}

void PutCsv(const Context& context, std::vector<std::string> columns, const Json& rows) {
  if (columns.empty() && !rows.empty()) {
    for (const auto& [name, value] : rows.front().items()) columns.push_back(name);
  }
  context.out(render::ToCsv(columns, rows));
}

}  // namespace

int Put(const Context& context, const Answer& answer) {
  const bool csv = context.output() == Output::kCsv;
  if (context.output() == Output::kTable) {
    context.out(answer.text());
  } else if (csv && answer.csv) {
    PutCsv(context, answer.columns, answer.csv());
  } else if (!csv && !context.options.json_lines()) {
    context.out(render::ToJson(answer.json()));
  } else {
    Json value = answer.json();
    const Json rows =
        answer.rows.empty() ? Json::array({std::move(value)}) : std::move(value.at(answer.rows));
    csv ? PutCsv(context, answer.columns, rows) : PutLines(context, rows);
  }
  return kExitOk;
}

int PutRow(const Context& context, const Json& row, const std::string& text,
           const std::vector<std::string>& columns) {
  return Put(context,
             {.json = [&] { return row; }, .text = [&] { return text; }, .columns = columns});
}

}  // namespace pelab::client
