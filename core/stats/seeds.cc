#include "core/stats/seeds.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/stats/bootstrap.h"
#include "core/stats/distributions.h"

namespace pelab::stats {

double Mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  double lost = 0;  // the low-order digits that adding to `sum` drops
  for (const double value : values) {
    const double next = sum + value;
    lost += std::fabs(sum) >= std::fabs(value) ? (sum - next) + value : (value - next) + sum;
    sum = next;
  }
  return (sum + lost) / static_cast<double>(values.size());
}

std::optional<double> SampleSd(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<double> IntervalHalfWidth(std::span<const double> values, double confidence) {
  const std::optional<double> sd = SampleSd(values);
  if (!sd) return std::nullopt;
  const auto n = static_cast<double>(values.size());
  return StudentTQuantile((1 + confidence) / 2, n - 1) * *sd / std::sqrt(n);
}

SeedSummary Summarise(std::span<const SeedResult> seeds, IntervalKind interval, double confidence) {
  SeedSummary summary;
  std::vector<double> values;
  for (const SeedResult& seed : seeds) {
    switch (seed.state) {
      case SeedResult::State::kDone:
        values.push_back(seed.value);
        break;
      case SeedResult::State::kMissing:
        ++summary.missing;
        break;
      case SeedResult::State::kFailed:
        ++summary.failed;
        break;
    }
  }
  summary.n = static_cast<int>(values.size());
  if (!values.empty()) summary.mean = Mean(values);
  summary.sd = SampleSd(values);
  summary.half_width = IntervalHalfWidth(values, confidence);
  if (interval == IntervalKind::kStudentT && summary.half_width) {
    summary.low = *summary.mean - *summary.half_width;
    summary.high = *summary.mean + *summary.half_width;
  }
  if (interval == IntervalKind::kBootstrap) {
    if (const auto bounds = BootstrapInterval(values, confidence)) {
      summary.low = bounds->low;
      summary.high = bounds->high;
    }
  }
  return summary;
}

}  // namespace pelab::stats
