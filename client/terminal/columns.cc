#include "client/terminal/columns.h"

#include <string>

namespace pelab::client {

std::vector<render::Column> LeadingColumns(const results::CellTable& table) {
  std::vector<render::Column> columns;
  for (const std::string& name : table.columns) {
    const bool shrinks = name != "protocol" && name != "seed";
    columns.push_back({name, render::Column::Align::kLeft, shrinks, /*is_label=*/shrinks});
  }
  return columns;
}

}  // namespace pelab::client
