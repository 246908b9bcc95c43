#include "core/stats/paired.h"

#include <algorithm>
#include <cmath>

#include "core/stats/distributions.h"
#include "core/stats/seeds.h"

namespace pelab::stats {

std::optional<PairedTest> PairedT(std::span<const double> differences) {
  const std::optional<double> sd = SampleSd(differences);
  if (!sd || *sd == 0) return std::nullopt;
  const auto n = static_cast<double>(differences.size());
  PairedTest test;
  test.t = Mean(differences) / (*sd / std::sqrt(n));
  test.p = std::min(1.0, 2 * StudentTCdf(-std::fabs(test.t), n - 1));
  return test;
}

double McNemarP(std::int64_t only_a, std::int64_t only_b) {
  return std::min(1.0, 2 * BinomialCdf(std::min(only_a, only_b), only_a + only_b, 0.5));
}

}  // namespace pelab::stats
