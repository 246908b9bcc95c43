// Names that tell the cells of a sheet apart in messages. Thread-safe after construction.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/experiment/sweep.h"

namespace pelab::claims {

class CellLabels {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  // The names of more cells than this leave the settings out. Comparing so many takes seconds.
  static constexpr std::size_t kMostCompared = 2000;

  explicit CellLabels(const std::vector<experiment::Cell>& cells);

  // "rope distance clean", followed by the settings: "… model.layers=4".
  const std::string& Of(std::size_t cell) const { return labels_[cell]; }
  // The fields that tell the cell from others of its PE, task and protocol, and their values.
  const Settings& SettingsOf(std::size_t cell) const { return settings_[cell]; }

 private:
  std::vector<std::string> labels_;
  std::vector<Settings> settings_;
};

}  // namespace pelab::claims
