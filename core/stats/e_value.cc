#include "core/stats/e_value.h"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/stats/boost_policy.h"
#include "core/stats/log_beta.h"

namespace pelab::stats {
namespace {

// For k <= n / 2, where the upper tail in the formula would underflow. With binomial coefficients
// the e-value is the sum of C(n + 1, j) for j <= k, divided by (n + 1) C(n, k). The largest term
// comes first, and each next one is smaller by a factor below 1.
double LogOfFewSuccesses(double k, double n) {
  double term = 1, sum = 1;
  for (double i = 0; i < k && term > 1e-18 * sum; ++i) {
    term *= (k - i) / (n + 2 - k + i);
    sum += term;
  }
  return std::log(sum) - std::log(n + 1 - k);
}

// The fewest successes of `trials` with which the threshold is reached; trials + 1 if it is not.
// `from` is at most the result.
std::int64_t FewestSuccesses(double log_threshold, std::int64_t trials, std::int64_t from) {
  while (from <= trials && LogEValue({from, trials}) < log_threshold) ++from;
  return from;
}

}  // namespace

double LogEValue(const SignCount& count) {
  const auto k = static_cast<double>(count.successes);
  const auto n = static_cast<double>(count.trials);
  if (2 * k <= n) return LogOfFewSuccesses(k, n);
  return (n + 1) * std::numbers::ln2 + LogBeta(k + 1, n - k + 1) +
         std::log(boost::math::ibetac(k + 1, n - k + 1, 0.5, Quiet()));
}

double LogMeanEValue(std::span<const double> logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum / static_cast<double>(logs.size()));
}

double ChanceOfReaching(double log_threshold, const SignCount& now, std::int64_t most_trials) {
  if (LogEValue(now) >= log_threshold) return 1;
  // chances[i] belongs to now.successes + i successes, with the threshold not reached so far.
  std::vector<double> chances = {1};
  double reached = 0;
  // A number of successes that is enough is enough for fewer observations too.
  std::int64_t enough = now.successes;
  for (std::int64_t trials = now.trials; trials < most_trials; ++trials) {
    chances.push_back(0);
    for (std::size_t i = chances.size() - 1; i-- > 0;) {
      const double success = static_cast<double>(now.successes + static_cast<std::int64_t>(i) + 1) /
                             static_cast<double>(trials + 2);
      chances[i + 1] += chances[i] * success;
      chances[i] *= 1 - success;
    }
    enough = FewestSuccesses(log_threshold, trials + 1, enough);
    while (!chances.empty() &&
           now.successes + static_cast<std::int64_t>(chances.size()) - 1 >= enough) {
      reached += chances.back();
      chances.pop_back();
    }
    if (chances.empty()) break;
  }
  return std::min(reached, 1.0);
}

}  // namespace pelab::stats
