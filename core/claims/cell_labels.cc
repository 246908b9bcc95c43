#include "core/claims/cell_labels.h"

#include "core/base/strings.h"
#include "core/results/cell_jobs.h"
#include "core/results/varying.h"

namespace pelab::claims {

CellLabels::CellLabels(const std::vector<experiment::Cell>& cells) {
  const bool compares = cells.size() <= kMostCompared;
  const results::JobList jobs = compares ? results::JobsOf(cells) : results::JobList();
  const results::Varying varying(jobs);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Settings settings;
    std::string label =
        Concat(cells[i].pe_label, " ", cells[i].task_label, " ", cells[i].protocol_label);
    for (const std::string& field : varying.fields()) {
      std::string value = varying.ValueOf(i, field);
      if (field == "protocol" || value == "-") continue;
      label += Concat(" ", field, "=", value);
      settings.emplace_back(field, std::move(value));
    }
    labels_.push_back(std::move(label));
    settings_.push_back(std::move(settings));
  }
}

}  // namespace pelab::claims
