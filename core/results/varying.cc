#include "core/results/varying.h"

#include "core/base/strings.h"

namespace pelab::results {

Varying::Varying(const JobList& jobs) : table_(jobs) {
  for (const std::string& column : TellingColumns(table_.distinct())) {
    if (column != "pe" && column != "task") fields_.push_back(column);
  }
  for (const Fields* fields : table_.distinct()) {
    for (const std::string& field : fields_) hashes_.Add(results::ValueOf(*fields, field));
  }
}

std::string Varying::ValueOf(std::size_t job, const std::string& field) const {
  return hashes_.In(table_.StoredValue(job, field));
}

std::string Varying::LabelOf(std::size_t job, const std::string& shown) const {
  std::string label;
  for (const std::string& field : fields_) {
    const std::string value = field == shown ? "-" : ValueOf(job, field);
    if (value != "-") label += Concat(label.empty() ? "" : " ", field, "=", value);
  }
  return label;
}

}  // namespace pelab::results
