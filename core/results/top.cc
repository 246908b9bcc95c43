#include "core/results/top.h"

#include <algorithm>

namespace pelab::results {

bool IsBetterWhenLow(const Metric& metric) {
  return metric.source == Metric::Source::kEpochs || metric.name.ends_with("_loss") ||
         metric.name == "generalisation_gap" || metric.name == "wall_seconds";
}

LeftOut KeepTop(CellTable& table, std::size_t count) {
  const bool low = IsBetterWhenLow(table.metric);
  std::stable_sort(table.cells.begin(), table.cells.end(), [low](const Cell& a, const Cell& b) {
    if (!a.summary.mean || !b.summary.mean) return a.summary.mean && !b.summary.mean;
    return low ? *a.summary.mean < *b.summary.mean : *a.summary.mean > *b.summary.mean;
  });
  LeftOut left_out;
  while (count > 0 && count < table.cells.size() && !table.cells[count - 1].summary.mean) --count;
  for (std::size_t c = count; c < table.cells.size(); ++c) {
    left_out.cells += 1;
    left_out.without_mean += table.cells[c].summary.mean ? 0 : 1;
  }
  table.cells.resize(table.cells.size() - left_out.cells);
  return left_out;
}

}  // namespace pelab::results
