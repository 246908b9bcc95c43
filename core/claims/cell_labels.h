// What messages call the cells of a sheet. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/experiment/sweep.h"
#include "core/results/job_list.h"
#include "core/results/varying.h"

namespace pelab::claims {

class CellLabels {
 public:
  // Refers to `cells`, which must outlive it.
  explicit CellLabels(const std::vector<experiment::Cell>& cells);
  CellLabels(const CellLabels&) = delete;
  CellLabels& operator=(const CellLabels&) = delete;

  // "rope distance clean", followed by the settings: "… model.layers=4".
  std::string Of(std::size_t cell) const;
  // The fields that tell the cell from others of its PE, task and protocol, and their values.
  std::vector<std::pair<std::string, std::string>> SettingsOf(std::size_t cell) const;

 private:
  const std::vector<experiment::Cell>& cells_;
  results::JobList jobs_;
  results::Varying varying_;
};

}  // namespace pelab::claims
