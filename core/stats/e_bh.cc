#include "core/stats/e_bh.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace pelab::stats {

Rejections EBh(std::span<const double> log_e_values, double rate) {
  std::vector<double> sorted(log_e_values.begin(), log_e_values.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const auto all = static_cast<double>(sorted.size());
  const auto threshold = [&](std::size_t k) {
    return std::log(all / (rate * static_cast<double>(std::max<std::size_t>(k, 1))));
  };
  Rejections result;
  for (std::size_t k = sorted.size(); k > 0 && result.count == 0; --k) {
    if (sorted[k - 1] >= threshold(k)) result.count = k;
  }
  result.log_threshold = threshold(result.count);
  result.log_next_threshold = threshold(std::min(result.count + 1, sorted.size()));
  for (const double log : log_e_values) {
    result.rejected.push_back(result.count > 0 && log >= result.log_threshold);
  }
  return result;
}

}  // namespace pelab::stats
