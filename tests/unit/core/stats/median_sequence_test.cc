#include "core/stats/median_sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "core/stats/e_value.h"

namespace pelab::stats {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool Excludes(const std::vector<double>& values, double m) {
  const auto n = static_cast<std::int64_t>(values.size());
  const auto above = std::count_if(values.begin(), values.end(), [&](double v) { return v > m; });
  const auto below = std::count_if(values.begin(), values.end(), [&](double v) { return v < m; });
  return (std::exp(LogEValue({above, n})) + std::exp(LogEValue({below, n}))) / 2 >= 20;
}

TEST(MedianSequenceTest, HasLimitsFromEightValuesOn) {
  std::vector<double> values = {3, 1, 7, 4, 2, 6, 5};
  EXPECT_EQ(MedianSequence(values).low, -kInfinity);
  EXPECT_EQ(MedianSequence(values).high, kInfinity);
  values.push_back(8);
  EXPECT_EQ(MedianSequence(values).low, 1);
  EXPECT_EQ(MedianSequence(values).high, 8);
}

TEST(MedianSequenceTest, NoValuesSayNothing) {
  EXPECT_EQ(MedianSequence({}).low, -kInfinity);
  EXPECT_EQ(MedianSequence({}).high, kInfinity);
}

TEST(MedianSequenceTest, InfiniteValuesAreValues) {
  std::vector<double> values(8, kInfinity);
  EXPECT_EQ(MedianSequence(values).low, kInfinity);
  values.insert(values.end(), 8, 0.5);
  EXPECT_EQ(MedianSequence(values).low, 0.5);
}

// Every number inside the limits is possible, every number outside is excluded.
TEST(MedianSequenceTest, IsTheSetThatIsNotExcluded) {
  for (const std::uint64_t n : {8, 9, 15, 40, 121}) {
    for (const bool coarse : {false, true}) {  // coarse values have many ties
      CounterRandom random(n, "median", coarse ? 1 : 0);
      std::vector<double> values;
      for (std::uint64_t i = 0; i < n; ++i) {
        const double value = random.Normal();
        values.push_back(coarse ? std::round(2 * value) : value);
      }
      const MedianLimits limits = MedianSequence(values);
      std::vector<double> points = values;
      std::sort(points.begin(), points.end());
      for (std::size_t i = 1; i < n; ++i) points.push_back((points[i - 1] + points[i]) / 2);
      points.push_back(points.front() - 1);
      for (const double m : points) {
        const bool inside = limits.low < m && m < limits.high;
        const bool outside = m < limits.low || limits.high < m;
        if (!inside && !outside) continue;  // a limit itself may be either
        EXPECT_EQ(Excludes(values, m), outside) << n << " values, " << m;
      }
    }
  }
}

TEST(MedianSequenceTest, CoversTheMedianWheneverOneLooks) {
  int ever_missed = 0;
  constexpr int kRepetitions = 400;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    CounterRandom random(7, "median coverage", static_cast<std::uint64_t>(repetition));
    std::vector<double> values;
    bool missed = false;
    for (int i = 0; i < 60; ++i) {
      values.push_back(std::exp(random.Normal()));  // the median is 1
      const MedianLimits limits = MedianSequence(values);
      missed = missed || limits.low > 1 || limits.high < 1;
    }
    if (missed) ++ever_missed;
  }
  EXPECT_LE(ever_missed, kRepetitions / 20);
  EXPECT_GT(ever_missed, 0) << "a sequence that never misses says too little";
}

}  // namespace
}  // namespace pelab::stats
