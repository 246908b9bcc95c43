#include "core/stats/seeds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace pelab::stats {
namespace {

using State = SeedResult::State;

TEST(SeedsTest, MeanAndSampleSd) {
  const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};  // mean 5, sum of squares 32
  EXPECT_EQ(Mean(values), 5);
  EXPECT_DOUBLE_EQ(*SampleSd(values), std::sqrt(32.0 / 7));
}

TEST(SeedsTest, MeanKeepsSmallValuesBesideLargeOnes) {
  const std::vector<double> values = {1e16, 1, -1e16, 1};
  EXPECT_EQ(Mean(values), 0.5);
}

TEST(SeedsTest, IntervalOfThreeSeeds) {
  // mean 0.7, sd 0.1, half width t(0.975, 2) * 0.1 / sqrt(3)
  const std::vector<double> values = {0.6, 0.7, 0.8};
  EXPECT_NEAR(*IntervalHalfWidth(values), 4.302652729749464 * 0.1 / std::sqrt(3.0), 1e-12);
  EXPECT_LT(*IntervalHalfWidth(values, 0.5), *IntervalHalfWidth(values, 0.95));
}

TEST(SeedsTest, EqualValuesHaveNoSpread) {
  const std::vector<double> values = {0.1, 0.1, 0.1};
  EXPECT_NEAR(*SampleSd(values), 0, 1e-16);
}

TEST(SeedsTest, OneValueHasNoInterval) {
  const std::vector<double> one = {0.5};
  EXPECT_FALSE(SampleSd(one).has_value());
  EXPECT_FALSE(IntervalHalfWidth(one).has_value());
  EXPECT_TRUE(std::isnan(Mean({})));
}

TEST(SeedsTest, SummaryCountsWhatIsNotThere) {
  const std::vector<SeedResult> seeds = {{State::kDone, 0.6}, {State::kMissing, 0},
                                         {State::kDone, 0.8}, {State::kFailed, 0},
                                         {State::kFailed, 0}, {State::kCancelled, 0}};
  const SeedSummary summary = Summarize(seeds);
  EXPECT_EQ(summary.n, 2);
  EXPECT_EQ(summary.missing, 1);
  EXPECT_EQ(summary.failed, 2);
  EXPECT_EQ(summary.cancelled, 1);
  EXPECT_DOUBLE_EQ(*summary.mean, 0.7);
  EXPECT_NEAR(*summary.half_width, 12.706204736174698 * std::sqrt(0.02) / std::sqrt(2.0), 1e-9);
  EXPECT_FALSE(summary.complete());
}

TEST(SeedsTest, AMedianKnowsOfSeedsThatNeverGotThere) {
  const auto of = [](std::vector<SeedResult> seeds) { return Summarize(seeds); };
  const SeedSummary most = of({{State::kDone, 12}, {State::kCensored, 19}, {State::kDone, 5}});
  EXPECT_EQ(most.median, 12) << "5, 12, more than 19";
  EXPECT_EQ(most.censored, 1);
  EXPECT_EQ(most.n, 2);
  EXPECT_FALSE(most.mean || most.sd || most.half_width || most.low)
      << "8.5 would be that of the seeds that did well";
  EXPECT_TRUE(most.complete()) << "nothing more will come";
  const SeedSummary few =
      of({{State::kCensored, 19}, {State::kDone, 3}, {State::kCensored, 19}, {State::kMissing, 0}});
  EXPECT_FALSE(few.median.has_value());
  EXPECT_EQ(few.median_above, 19);
  EXPECT_FALSE(few.complete());
  EXPECT_EQ(of({{State::kDone, 3}, {State::kCensored, 19}}).median, 3) << "half were there by 3";
  EXPECT_EQ(of({{State::kDone, 3}, {State::kDone, 8}}).median, 3);
  EXPECT_EQ(of({{State::kCensored, 4}}).median_above, 4);
  EXPECT_FALSE(of({}).median || of({}).median_above);
}

TEST(SeedsTest, CompletenessNeedsEverySeed) {
  EXPECT_FALSE(Summarize({}).complete());
  EXPECT_FALSE(Summarize({}).mean.has_value());
  const std::vector<SeedResult> one = {{State::kDone, 0.25}};
  EXPECT_TRUE(Summarize(one).complete());
  EXPECT_EQ(Summarize(one).mean, 0.25);
  EXPECT_FALSE(Summarize(one).half_width.has_value());
  const std::vector<SeedResult> none = {{State::kFailed, 0}};
  EXPECT_FALSE(Summarize(none).complete());
}

}  // namespace
}  // namespace pelab::stats
