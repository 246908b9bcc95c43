// Expected values from exact rational arithmetic: the sum of C(n + 1, j) for j <= k, divided by
// (n + 1) C(n, k).
#include "core/stats/e_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace pelab::stats {
namespace {

double EValue(std::int64_t k, std::int64_t n) { return std::exp(LogEValue({k, n})); }

TEST(EValueTest, GoldenValues) {
  EXPECT_NEAR(EValue(3, 3), 3.75, 1e-12);
  EXPECT_NEAR(EValue(5, 5), 10.5, 1e-12);
  EXPECT_NEAR(EValue(6, 6), 127.0 / 7, 1e-12);
  EXPECT_NEAR(EValue(8, 8), 511.0 / 9, 1e-12);
  EXPECT_NEAR(EValue(10, 10), 2047.0 / 11, 1e-11);
  EXPECT_NEAR(EValue(12, 12), 8191.0 / 13, 1e-11);
  EXPECT_NEAR(EValue(9, 10), 2036.0 / 110, 1e-12);
  EXPECT_NEAR(EValue(10, 12), 8100.0 / 858, 1e-12);
  EXPECT_NEAR(EValue(11, 12), 8178.0 / 156, 1e-12);
  EXPECT_NEAR(EValue(14, 16), 130918.0 / 2040, 1e-12);
  EXPECT_EQ(LogEValue({0, 0}), 0);
  EXPECT_NEAR(EValue(0, 5), 1.0 / 6, 1e-15);
}

TEST(EValueTest, NothingOverflows) {
  EXPECT_NEAR(LogEValue({1, 1000}), -6.906756776652547, 1e-12);
  EXPECT_NEAR(LogEValue({500, 1000}), -3.228835787221101, 1e-11);
  EXPECT_NEAR(LogEValue({2600, 5000}), 0.6581175122773857, 1e-10);
  EXPECT_NEAR(LogEValue({10400, 20000}), 11.97062603620725, 1e-9);
  EXPECT_NEAR(LogEValue({0, 100000}), -std::log(100001), 1e-11);
  EXPECT_NEAR(LogEValue({100000, 100000}), 100001 * std::log(2.0) - std::log(100001), 1e-8);
  for (const std::int64_t k : {0, 1, 400'000, 500'000, 500'001, 999'999, 1'000'000}) {
    EXPECT_TRUE(std::isfinite(LogEValue({k, 1'000'000}))) << k;
  }
}

TEST(EValueTest, GrowsWithSuccesses) {
  for (const std::int64_t n : {1, 2, 7, 40, 1001}) {
    for (std::int64_t k = 0; k < n; ++k) {
      EXPECT_LT(LogEValue({k, n}), LogEValue({k + 1, n})) << k << " of " << n;
    }
  }
}

// A fair coin's next toss changes the e-value by a factor with the mean 1.
TEST(EValueTest, IsAMartingaleAtTheNullsEdge) {
  for (std::int64_t n = 0; n < 60; ++n) {
    for (std::int64_t k = 0; k <= n; ++k) {
      EXPECT_NEAR((EValue(k, n + 1) + EValue(k + 1, n + 1)) / 2 / EValue(k, n), 1, 1e-11);
    }
  }
}

TEST(EValueTest, TheMeanOfEValuesIsThatOfTheirLogarithms) {
  EXPECT_NEAR(LogMeanEValue(std::vector<double>{std::log(2.0), std::log(6.0)}), std::log(4.0),
              1e-15);
  EXPECT_NEAR(LogMeanEValue(std::vector<double>{1000, 1000}), 1000, 1e-12);
  EXPECT_NEAR(LogMeanEValue(std::vector<double>{-2000, 1000}), 1000 - std::log(2.0), 1e-12);
}

// Adds the probabilities of all sequences of outcomes, one by one.
double ChanceByEnumeration(double log_threshold, SignCount now, std::int64_t most) {
  if (LogEValue(now) >= log_threshold) return 1;
  if (now.trials == most) return 0;
  const double success =
      static_cast<double>(now.successes + 1) / static_cast<double>(now.trials + 2);
  return success * ChanceByEnumeration(log_threshold, {now.successes + 1, now.trials + 1}, most) +
         (1 - success) * ChanceByEnumeration(log_threshold, {now.successes, now.trials + 1}, most);
}

TEST(ChanceOfReachingTest, IsThatOfAllSequencesTogether) {
  for (const double threshold : {5.0, 20.0, 400.0}) {
    for (const SignCount now : {SignCount{0, 0}, SignCount{3, 3}, SignCount{2, 6}, SignCount{5, 7},
                                SignCount{0, 6}, SignCount{9, 9}}) {
      for (const std::int64_t most : {now.trials, now.trials + 1, now.trials + 14}) {
        EXPECT_NEAR(ChanceOfReaching(std::log(threshold), now, most),
                    ChanceByEnumeration(std::log(threshold), now, most), 1e-12)
            << threshold << " from " << now.successes << " of " << now.trials << " to " << most;
      }
    }
  }
}

TEST(ChanceOfReachingTest, AThousandSeedsAreNoTrouble) {
  // The paths that do not reach it were counted in integers, and weighted by beta functions.
  EXPECT_NEAR(ChanceOfReaching(std::log(1600.0), {20, 40}, 1000), 0.18922856259993298, 1e-10);
  EXPECT_LT(ChanceOfReaching(std::log(1600.0), {200, 400}, 420), 1e-6);
}

}  // namespace
}  // namespace pelab::stats
