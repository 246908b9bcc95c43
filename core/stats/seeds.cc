#include "core/stats/seeds.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/stats/bootstrap.h"
#include "core/stats/distributions.h"

namespace pelab::stats {
namespace {

std::vector<double> Values(std::span<const SeedResult> seeds, SeedResult::State state) {
  std::vector<double> values;
  for (const SeedResult& seed : seeds) {
    if (seed.state == state) values.push_back(seed.value);
  }
  return values;
}

void FindMedian(std::vector<double> done, std::vector<double> censored, SeedSummary& summary) {
  const std::size_t all = done.size() + censored.size();
  if (all == 0) return;
  std::sort(done.begin(), done.end());
  std::sort(censored.begin(), censored.end(), std::greater<>());
  const std::size_t middle = (all - 1) / 2;  // the lower one for an even number
  if (middle < done.size()) {
    summary.median = done[middle];
  } else {
    summary.median_above = censored[all / 2];
  }
}

}  // namespace

double Mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  double lost = 0;  // the low-order digits that are lost in adding to `sum`
  for (const double value : values) {
    const double next = sum + value;
    lost += std::fabs(sum) >= std::fabs(value) ? (sum - next) + value : (value - next) + sum;
    sum = next;
  }
  return (sum + lost) / static_cast<double>(values.size());
}

std::optional<double> SampleSd(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  // The rounded mean of equal values may differ from each of them.
  const auto equals_first = [&](double value) { return value == values.front(); };
  if (std::all_of(values.begin(), values.end(), equals_first)) return 0;
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

SeedSummary Summarize(std::span<const SeedResult> seeds, double confidence) {
  SeedSummary summary;
  for (const SeedResult& seed : seeds) {
    summary.missing += seed.state == SeedResult::State::kMissing ? 1 : 0;
    summary.failed += seed.state == SeedResult::State::kFailed ? 1 : 0;
    summary.cancelled += seed.state == SeedResult::State::kCancelled ? 1 : 0;
  }
  const std::vector<double> values = Values(seeds, SeedResult::State::kDone);
  const std::vector<double> censored = Values(seeds, SeedResult::State::kCensored);
  summary.n = static_cast<int>(values.size());
  summary.censored = static_cast<int>(censored.size());
  FindMedian(values, censored, summary);
  if (!censored.empty()) return summary;
  if (!values.empty()) summary.mean = Mean(values);
  summary.sd = SampleSd(values);
  summary.half_width = IntervalHalfWidth(values, confidence);
  if (summary.half_width) {
    summary.low = *summary.mean - *summary.half_width;
    summary.high = *summary.mean + *summary.half_width;
  }
  return summary;
}

std::vector<SeedSummary> SummarizeAll(std::span<const std::vector<SeedResult>> groups,
                                      IntervalKind interval, double confidence) {
  std::vector<SeedSummary> summaries;
  for (const std::vector<SeedResult>& group : groups) {
    summaries.push_back(Summarize(group, confidence));
  }
  if (interval != IntervalKind::kBootstrap) return summaries;
  std::vector<std::vector<double>> samples;
  for (const std::vector<SeedResult>& group : groups) {
    samples.push_back(Values(group, SeedResult::State::kDone));
  }
  const auto intervals = BootstrapIntervals(samples, confidence);
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    if (!intervals[i] || summaries[i].censored > 0) continue;
    summaries[i].low = intervals[i]->low;
    summaries[i].high = intervals[i]->high;
  }
  return summaries;
}

}  // namespace pelab::stats
