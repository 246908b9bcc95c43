#include "client/terminal/varying_columns.h"

namespace pelab::client {

VaryingColumns::VaryingColumns(const results::JobList& jobs, const std::string& shown)
    : varying_(jobs), shown_(shown), fields_(varying_.fields()) {
  std::erase(fields_, shown);
}

void VaryingColumns::AddTo(std::vector<render::Column>& columns) const {
  if (fields_.size() > kMostColumns) {
    columns.push_back(render::LabelColumn("settings"));
    return;
  }
  for (const std::string& field : fields_) {
    columns.push_back(render::LabelColumn(field));
  }
}

void VaryingColumns::AddCells(std::size_t job, std::vector<std::string>& cells) const {
  if (fields_.size() > kMostColumns) {
    cells.push_back(varying_.LabelOf(job, shown_));
    return;
  }
  for (const std::string& field : fields_) cells.push_back(varying_.ValueOf(job, field));
}

}  // namespace pelab::client
