// Pearson's chi-square test of equal shares.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>

namespace pelab {

// The statistic of `counts` (missing values count 0) against `total / classes` each.
inline double ChiSquareOfEqualShares(const std::map<std::int64_t, std::int64_t>& counts,
                                     std::int64_t classes, std::int64_t total) {
  const double expected = static_cast<double>(total) / static_cast<double>(classes);
  double statistic =
      static_cast<double>(classes - static_cast<std::int64_t>(counts.size())) * expected;
  for (const auto& [value, count] : counts) {
    const double excess = static_cast<double>(count) - expected;
    statistic += excess * excess / expected;
  }
  return statistic;
}

// The value that a chi-square of `freedom` degrees is below with the probability that a standard normal is below `z`
// (Wilson and Hilferty, PNAS 1931: its cube root is nearly normal).
inline double ChiSquareQuantile(double freedom, double z) {
  const double spread = 2 / (9 * freedom);
  const double root = std::fmax(0, 1 - spread + z * std::sqrt(spread));
  return freedom * root * root * root;
}

// Whether values from `classes` equally likely ones would give these counts: neither more nor less even than all but one in
// a million of such draws. For at least 5 expected in each class.
inline void ExpectUniform(const std::map<std::int64_t, std::int64_t>& counts, std::int64_t classes,
                          std::int64_t total) {
  constexpr double kOneInAMillion = 4.892;  // two-sided
  ASSERT_GE(classes, 2);
  ASSERT_GE(total, 5 * classes);
  ASSERT_LE(static_cast<std::int64_t>(counts.size()), classes);
  const double statistic = ChiSquareOfEqualShares(counts, classes, total);
  const auto freedom = static_cast<double>(classes - 1);
  EXPECT_LT(statistic, ChiSquareQuantile(freedom, kOneInAMillion)) << classes << " classes";
  EXPECT_GT(statistic, ChiSquareQuantile(freedom, -kOneInAMillion)) << classes << " classes";
}

}  // namespace pelab
