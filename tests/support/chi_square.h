// Pearson's chi-square test of equal shares.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>

namespace pelab {

// The chi-square statistic of `counts` against an expected count of `total / classes` in each
// class. A value missing from `counts` counts as 0.
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

// The quantile of the chi-square distribution with `freedom` degrees of freedom: a variable with
// this distribution is below it with the same probability with which a standard normal variable is
// below `z`. Approximation of Wilson and Hilferty (PNAS 1931): the cube root is nearly normal.
inline double ChiSquareQuantile(double freedom, double z) {
  const double spread = 2 / (9 * freedom);
  const double root = std::fmax(0, 1 - spread + z * std::sqrt(spread));
  return freedom * root * root * root;
}

// Expects that the counts can come from `classes` equally likely values: neither too uneven nor too
// even. Uniform draws fail with probability one in a million. Needs at least 5 expected counts in
// each class.
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
