#include "core/stats/median_sequence.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/stats/e_value.h"

namespace pelab::stats {
namespace {

// The smallest value that is not excluded: of ascending values, and of the gaps before each.
double LowLimit(const std::vector<double>& ascending, double log_limit) {
  const auto n = static_cast<std::int64_t>(ascending.size());
  const auto excluded = [&](std::int64_t below, std::int64_t above) {
    const double sides[] = {LogEValue({below, n}), LogEValue({above, n})};
    return LogMeanEValue(sides) >= log_limit;
  };
  double last =
      -std::numeric_limits<double>::infinity();  // the lower end of the gap before the next value
  for (auto value = ascending.begin(); value != ascending.end();) {
    const auto next = std::upper_bound(value, ascending.end(), *value);
    const std::int64_t below = value - ascending.begin(), above = ascending.end() - next;
    if (!excluded(below, n - below)) return last;
    if (!excluded(below, above)) return *value;
    last = *value;
    value = next;
  }
  return last;
}

}  // namespace

MedianLimits MedianSequence(std::span<const double> values, double confidence) {
  const double log_limit = -std::log(1 - confidence);
  std::vector<double> ascending(values.begin(), values.end());
  std::sort(ascending.begin(), ascending.end());
  std::vector<double> mirrored(ascending.rbegin(), ascending.rend());
  for (double& value : mirrored) value = -value;
  return {LowLimit(ascending, log_limit), -LowLimit(mirrored, log_limit)};
}

}  // namespace pelab::stats
