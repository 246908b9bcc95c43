// Expected values from scipy 1.10: stats.ttest_rel and stats.binomtest.
#include "core/stats/paired.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/random.h"
#include "core/stats/bootstrap.h"
#include "core/stats/seeds.h"

namespace pelab::stats {
namespace {

TEST(PairedTTest, AgainstScipy) {
  const std::vector<double> differences = {0.91 - 0.89, 0.93 - 0.90, 0.88 - 0.89, 0.95 - 0.91,
                                           0.90 - 0.86};
  const auto test = PairedT(differences);
  ASSERT_TRUE(test.has_value());
  EXPECT_NEAR(test->t, 2.587986556882522, 1e-12);
  EXPECT_NEAR(test->p, 0.06081285615452247, 1e-12);
}

TEST(PairedTTest, NothingIsKnownOfOnePairOrOfEqualOnes) {
  EXPECT_FALSE(PairedT({}).has_value());
  EXPECT_FALSE(PairedT(std::vector<double>{0.5}).has_value());
  EXPECT_FALSE(PairedT(std::vector<double>{0.25, 0.25, 0.25}).has_value());
  // The rounded mean of these differs from each of them.
  EXPECT_FALSE(PairedT(std::vector<double>{0.012, 0.012, 0.012}).has_value());
  EXPECT_FALSE(PairedT(std::vector<double>(5, 0.028)).has_value());
}

TEST(McNemarTest, AgainstTheBinomialTest) {
  EXPECT_NEAR(McNemarP(3, 11), 0.057373046875, 1e-12);
  EXPECT_NEAR(McNemarP(5, 0), 0.0625, 1e-12);
  EXPECT_EQ(McNemarP(7, 7), 1);
  EXPECT_NEAR(McNemarP(412, 588) / 2.892842214104134e-08, 1, 1e-9);
  EXPECT_EQ(McNemarP(1, 0), 1);
  EXPECT_EQ(McNemarP(0, 0), 1);
}

TEST(BootstrapTest, TheSameValuesGiveTheSameInterval) {
  // Computed by tests/golden/test_aggregates.py, which implements the generator from its
  // description.
  const auto intervals = BootstrapIntervals(std::vector<std::vector<double>>{
      {0.91, 0.93, 0.88, 0.95, 0.90}, {0.95, 0.88, 0.93, 0.90, 0.91}});
  ASSERT_TRUE(intervals[0].has_value());
  EXPECT_NEAR(intervals[0]->low, 0.8939999999999999, 1e-12);
  EXPECT_NEAR(intervals[0]->high, 0.9340499999999992, 1e-12);
  EXPECT_EQ(intervals[0]->low, intervals[1]->low);
  EXPECT_EQ(intervals[0]->high, intervals[1]->high);
}

TEST(BootstrapTest, OneValueHasNoneAndEqualValuesHaveNoWidth) {
  const auto intervals =
      BootstrapIntervals(std::vector<std::vector<double>>{{0.5}, {0.1, 0.1, 0.1}, {}});
  EXPECT_FALSE(intervals[0].has_value());
  EXPECT_EQ(intervals[1]->low, 0.1);
  EXPECT_EQ(intervals[1]->high, 0.1);
  EXPECT_FALSE(intervals[2].has_value());
  EXPECT_TRUE(BootstrapIntervals({}).empty());
}

// The bootstrap by its definition, one draw after another.
Interval PlainBootstrap(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::vector<double> means;
  for (int resample = 0; resample < kResamples; ++resample) {
    CounterRandom random(0, "bootstrap", static_cast<std::uint64_t>(resample));
    std::vector<double> drawn(values.size());
    for (double& value : drawn) {
      value = values[random.Below(static_cast<std::uint32_t>(values.size()))];
    }
    means.push_back(Mean(drawn));
  }
  std::sort(means.begin(), means.end());
  const auto quantile = [&](double fraction) {
    const double place = fraction * (kResamples - 1);
    const auto below = static_cast<std::size_t>(place);
    return means[below] + (place - static_cast<double>(below)) * (means[below + 1] - means[below]);
  };
  return {quantile(0.025), quantile(0.975)};
}

TEST(BootstrapTest, ManySamplesTogetherAreEachAsByTheDefinition) {
  CounterRandom random(1, "bootstrap_test");
  std::vector<std::vector<double>> samples;
  // Sizes in no order, many of them, and one so large that some draws are rejected (about 9 of
  // 2e7).
  for (const int size : {5, 2, 1999, 0, 7, 1, 64, 5, 33}) samples.emplace_back(size);
  for (int i = 0; i < 70; ++i) samples.emplace_back(2 + i % 3);
  for (auto& sample : samples) {
    for (double& value : sample) value = std::floor(300 * random.Uniform()) / 300 - 0.5;
  }
  const auto intervals = BootstrapIntervals(samples);
  ASSERT_EQ(intervals.size(), samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    ASSERT_EQ(intervals[i].has_value(), samples[i].size() >= 2) << i;
    if (!intervals[i]) continue;
    const Interval plain = PlainBootstrap(samples[i]);
    EXPECT_NEAR(intervals[i]->low, plain.low, 1e-13) << samples[i].size();
    EXPECT_NEAR(intervals[i]->high, plain.high, 1e-13) << samples[i].size();
  }
}

}  // namespace
}  // namespace pelab::stats
