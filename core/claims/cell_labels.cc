#include "core/claims/cell_labels.h"

#include "core/base/strings.h"
#include "core/results/cell_jobs.h"

namespace pelab::claims {

CellLabels::CellLabels(const std::vector<experiment::Cell>& cells)
    : cells_(cells), jobs_(results::JobsOf(cells)), varying_(jobs_) {}

std::string CellLabels::Of(std::size_t cell) const {
  std::string label =
      Concat(cells_[cell].pe_label, " ", cells_[cell].task_label, " ", cells_[cell].protocol_label);
  for (const auto& [field, value] : SettingsOf(cell)) label += Concat(" ", field, "=", value);
  return label;
}

std::vector<std::pair<std::string, std::string>> CellLabels::SettingsOf(std::size_t cell) const {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const std::string& field : varying_.fields()) {
    std::string value = varying_.ValueOf(cell, field);
    if (field != "protocol" && value != "-") settings.emplace_back(field, std::move(value));
  }
  return settings;
}

}  // namespace pelab::claims
