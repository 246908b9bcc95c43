#include "core/stats/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/base/random.h"
#include "core/stats/seeds.h"

namespace pelab::stats {
namespace {

// Of sorted values, at `fraction` of the way from the first to the last.
double Quantile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

std::optional<Interval> BootstrapInterval(std::span<const double> values, double confidence) {
  if (values.size() < 2) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> means, drawn(sorted.size());
  means.reserve(kResamples);
  for (int resample = 0; resample < kResamples; ++resample) {
    CounterRandom random(0, "bootstrap", static_cast<std::uint64_t>(resample));
    for (double& value : drawn) {
      value = sorted[random.Below(static_cast<std::uint32_t>(sorted.size()))];
    }
    means.push_back(Mean(drawn));
  }
  std::sort(means.begin(), means.end());
  return Interval{Quantile(means, (1 - confidence) / 2), Quantile(means, (1 + confidence) / 2)};
}

}  // namespace pelab::stats
