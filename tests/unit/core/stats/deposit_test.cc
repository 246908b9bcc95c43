#include "core/stats/deposit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace pelab::stats {
namespace {

using Row = std::vector<std::optional<PairedCounts>>;

AblationMatrix Matrix(const std::vector<Row>& rows, std::int64_t total, std::int64_t intact,
                      double chance) {
  AblationMatrix matrix{static_cast<int>(rows.size()),
                        static_cast<int>(rows.front().size()),
                        {},
                        total,
                        intact,
                        chance};
  for (const Row& row : rows) matrix.entries.insert(matrix.entries.end(), row.begin(), row.end());
  return matrix;
}

// A row with lost examples and no gained ones.
Row Lost(const std::vector<std::int64_t>& lost) {
  Row row;
  for (const std::int64_t count : lost) row.push_back(PairedCounts{count, 0});
  return row;
}

TEST(PairedDropTest, IsTheMeanOfTheChangesAndItsError) {
  // 1000 changes of +1 (60), -1 (20) and 0: mean 0.04, variance 0.08 - 0.0016.
  const PairedDrop drop = Drop({60, 20}, 1000);
  EXPECT_DOUBLE_EQ(drop.drop, 0.04);
  EXPECT_NEAR(drop.standard_error, std::sqrt(0.0784 / 1000), 1e-15);
  EXPECT_TRUE(drop.counts);
  EXPECT_FALSE(Drop({20, 60}, 1000).counts);  // a gain is not a drop
  EXPECT_DOUBLE_EQ(Drop({20, 60}, 1000).drop, -0.04);
}

TEST(PairedDropTest, AgreesWithTheChangesWrittenOut) {
  std::mt19937 random(7);  // NOLINT: the same cases every time
  for (int round = 0; round < 100; ++round) {
    const std::int64_t n = 1 + static_cast<std::int64_t>(random() % 500);
    const auto lost = static_cast<std::int64_t>(random() % (n + 1));
    const auto gained = static_cast<std::int64_t>(random() % (n - lost + 1));
    std::vector<double> changes(static_cast<std::size_t>(n), 0.0);
    std::fill_n(changes.begin(), lost, 1.0);
    std::fill_n(changes.begin() + lost, gained, -1.0);
    const double mean = std::accumulate(changes.begin(), changes.end(), 0.0) / n;
    double squares = 0;
    for (const double change : changes) squares += (change - mean) * (change - mean);
    const PairedDrop drop = Drop({lost, gained}, n);
    EXPECT_NEAR(drop.drop, mean, 1e-12);
    EXPECT_NEAR(drop.standard_error, std::sqrt(squares / n / n), 1e-9);
  }
}

TEST(PairedDropTest, CountsFromThreeStandardErrorsOn) {
  // With k losses and no gains, m > 3 s.e. means k > 9 (1 - k / n): 8 of 100 fall short of 8.28, 9
  // exceed 8.19.
  EXPECT_FALSE(Drop({8, 0}, 100).counts);
  EXPECT_TRUE(Drop({9, 0}, 100).counts);
  EXPECT_FALSE(Drop({0, 0}, 100).counts);
  // Every example is lost: the variance is zero.
  EXPECT_EQ(Drop({100, 0}, 100).standard_error, 0);
  EXPECT_TRUE(Drop({100, 0}, 100).counts);
}

TEST(StandsOutTest, NeedsFiveStandardErrors) {
  // At A = 0.5 and n = 100 the standard error is 0.05.
  EXPECT_TRUE(StandsOut(50, 100, 0.25));
  EXPECT_FALSE(StandsOut(50, 100, 0.2501));
  EXPECT_FALSE(StandsOut(0, 100, 0.1));
  EXPECT_TRUE(StandsOut(100, 100, 0.5));   // the error is 0 at an accuracy of 1
  EXPECT_FALSE(StandsOut(100, 100, 1.0));  // a task with one class is not a task
  EXPECT_FALSE(StandsOut(0, 0, 0.1));
}

TEST(IndicesTest, OneLayerByHand) {
  // Net drops 600, 150, 50 and 5 - 3, which does not count: d = 600, 150, 50, 0 of 1000; sum 800.
  const AblationMatrix matrix = Matrix(
      {{{PairedCounts{50, 0}, PairedCounts{610, 10}, PairedCounts{5, 3}, PairedCounts{150, 0}}}},
      1000, 900, 0.1);
  const std::vector<DepositIndices> all = IndicesOf(matrix);
  ASSERT_EQ(all.size(), 2u);
  for (const DepositIndices& indices : all) {
    EXPECT_DOUBLE_EQ(*indices.max_drop, 0.6);
    EXPECT_DOUBLE_EQ(*indices.top_share, 0.75);
    EXPECT_DOUBLE_EQ(*indices.top_ratio, 4);
    // Mean absolute difference over twice the mean: pairs 600, 450, 550, 100, 150, 50 sum to 1900;
    // 2 * 1900 / 16 = 237.5, mean 200, so 237.5 / 400.
    EXPECT_DOUBLE_EQ(*indices.gini, 0.59375);
    // p = 3/4, 3/16, 1/16, 0: sum of squares (144 + 9 + 1) / 256.
    EXPECT_DOUBLE_EQ(*indices.effective_heads, 256.0 / 154);
    EXPECT_EQ(indices.top_layer, 0);
    EXPECT_EQ(indices.top_head, 1);
  }
  EXPECT_EQ(all[0].layer, 0);
  EXPECT_EQ(all[0].deposit, true);
  EXPECT_FALSE(all[0].deposits.has_value());
  EXPECT_FALSE(all[1].layer.has_value());
  EXPECT_FALSE(all[1].deposit.has_value());
  EXPECT_EQ(all[1].deposits, 1);
}

TEST(IndicesTest, LayersAreDecidedAloneAndTheGlobalFiguresDescribe) {
  // One large head in each of two layers: two deposits, although no head holds most of the total.
  const AblationMatrix matrix = Matrix(
      {Lost({600, 0, 0, 0}), Lost({0, 0, 0, 600}), Lost({200, 200, 200, 200})}, 1000, 1000, 0.01);
  const std::vector<DepositIndices> all = IndicesOf(matrix);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].deposit, true);
  EXPECT_EQ(all[1].deposit, true);
  EXPECT_EQ(all[1].top_head, 3);
  EXPECT_EQ(all[2].deposit, false);
  EXPECT_DOUBLE_EQ(*all[2].effective_heads, 4);
  EXPECT_DOUBLE_EQ(*all[2].gini, 0);
  EXPECT_DOUBLE_EQ(*all[2].top_ratio, 1);
  EXPECT_EQ(all[3].deposits, 2);
  EXPECT_DOUBLE_EQ(*all[3].top_share, 0.3);
  EXPECT_DOUBLE_EQ(*all[3].top_ratio, 1);
  EXPECT_EQ(all[3].top_layer, 0);  // the first of equal heads
  EXPECT_EQ(all[3].top_head, 0);
}

TEST(IndicesTest, GiniAndEffectiveHeadsOfTheLimits) {
  const std::vector<DepositIndices> one = IndicesOf(Matrix({Lost({0, 0, 500, 0})}, 1000, 900, 0));
  EXPECT_DOUBLE_EQ(*one[0].gini, 0.75);
  EXPECT_DOUBLE_EQ(*one[0].effective_heads, 1);
  EXPECT_DOUBLE_EQ(*one[0].top_share, 1);
  EXPECT_FALSE(one[0].top_ratio.has_value());  // nothing to divide by
  EXPECT_EQ(one[0].deposit, true);
}

TEST(IndicesTest, TheThresholdsAreReachedByEquality) {
  // 0.40 exactly, and a ratio of 3 exactly; 300 / 100 is a ratio that binary fractions miss.
  const auto deposit = [](const std::vector<std::int64_t>& lost, std::int64_t intact) {
    return *IndicesOf(Matrix({Lost(lost)}, 1000, intact, 0)).front().deposit;
  };
  EXPECT_TRUE(deposit({400, 0}, 1000));
  EXPECT_FALSE(deposit({399, 0}, 1000));
  EXPECT_TRUE(deposit({399, 0}, 798));  // half of the accuracy above chance
  EXPECT_FALSE(deposit({399, 0}, 799));
  EXPECT_TRUE(deposit({600, 200}, 1000));
  EXPECT_FALSE(deposit({600, 201}, 1000));
  EXPECT_TRUE(deposit({300, 100}, 600));
}

TEST(IndicesTest, ChanceLowersWhatHalfIs) {
  // 900 right of 1000, 0.2 by chance: half of 0.7 is 0.35.
  EXPECT_EQ(IndicesOf(Matrix({Lost({350, 0})}, 1000, 900, 0.2))[0].deposit, true);
  EXPECT_EQ(IndicesOf(Matrix({Lost({349, 0})}, 1000, 900, 0.2))[0].deposit, false);
}

TEST(IndicesTest, ANoisySecondHeadLeavesTheRatioOpen) {
  // The second head changes 100 examples each way: net 0, standard error sqrt(0.5 / 400) = 0.0354,
  // three of them 0.106. A drop of 0.45 is more than three times that; one of 0.25 (all there is)
  // is not.
  const auto deposit = [](std::int64_t top, std::int64_t intact) {
    return *IndicesOf(Matrix({{PairedCounts{top, 0}, PairedCounts{100, 100}}}, 400, intact, 0))
                .front()
                .deposit;
  };
  EXPECT_TRUE(deposit(180, 200));
  EXPECT_FALSE(deposit(100, 120));
}

TEST(IndicesTest, AmongUncountedDropsTheLargestStandsForTheSecond) {
  // (40, 40) is noisier than (0, 0). It comes first among the uncounted heads only if its change is
  // larger.
  const double three_errors = 3 * std::sqrt(0.8 / 100) * 100;  // 26.8 of 100
  const std::int64_t top = 50;
  ASSERT_LT(static_cast<double>(top), 3 * three_errors);
  const auto deposit = [&](PairedCounts a, PairedCounts b) {
    return *IndicesOf(Matrix({{PairedCounts{top, 0}, a, b}}, 100, 60, 0)).front().deposit;
  };
  EXPECT_FALSE(deposit({41, 39}, {0, 0}));
  EXPECT_TRUE(deposit({39, 41}, {0, 0}));
}

TEST(IndicesTest, NothingDrops) {
  const std::vector<DepositIndices> all =
      IndicesOf(Matrix({Lost({0, 0}), {PairedCounts{3, 9}, PairedCounts{5, 4}}}, 1000, 900, 0.1));
  ASSERT_EQ(all.size(), 3u);
  for (const DepositIndices& indices : all) {
    EXPECT_FALSE(indices.max_drop || indices.top_share || indices.top_ratio || indices.gini ||
                 indices.effective_heads || indices.top_layer || indices.top_head);
  }
  EXPECT_EQ(all[0].deposit, false);
  EXPECT_EQ(all[1].deposit, false);
  EXPECT_EQ(all[2].deposits, 0);
}

TEST(IndicesTest, AtTheFloorNothingIsSaid) {
  // 120 right of 1000 at a chance of 0.1 is two standard errors above chance.
  const std::vector<DepositIndices> all = IndicesOf(Matrix({Lost({100, 0})}, 1000, 120, 0.1));
  for (const DepositIndices& indices : all) {
    EXPECT_FALSE(indices.max_drop || indices.gini || indices.top_head || indices.deposit ||
                 indices.deposits);
  }
  EXPECT_EQ(all[0].layer, 0);
}

TEST(IndicesTest, EntriesThatDoNotExistAreNotZeros) {
  const std::vector<DepositIndices> all =
      IndicesOf(Matrix({{std::nullopt, PairedCounts{500, 0}, PairedCounts{0, 0}, std::nullopt},
                        {std::nullopt, std::nullopt, std::nullopt, std::nullopt},
                        {std::nullopt, std::nullopt, PairedCounts{500, 0}, std::nullopt}},
                       1000, 900, 0.1));
  EXPECT_DOUBLE_EQ(*all[0].gini, 0.5);  // of two entries, not four
  EXPECT_EQ(all[0].top_head, 1);
  EXPECT_EQ(all[0].deposit, true);
  EXPECT_FALSE(all[1].max_drop.has_value());
  EXPECT_FALSE(all[1].deposit.has_value());
  EXPECT_DOUBLE_EQ(*all[2].top_share, 1);
  EXPECT_FALSE(all[2].deposit.has_value());  // one head has no other to compare with
  EXPECT_EQ(all[3].deposits, 1);
  EXPECT_DOUBLE_EQ(*all[3].effective_heads, 2);
}

TEST(IndicesTest, OneHeadIsDescribedAndNotJudged) {
  const std::vector<DepositIndices> all = IndicesOf(Matrix({Lost({800})}, 1000, 900, 0.1));
  EXPECT_DOUBLE_EQ(*all[0].max_drop, 0.8);
  EXPECT_DOUBLE_EQ(*all[0].top_share, 1);
  EXPECT_DOUBLE_EQ(*all[0].gini, 0);
  EXPECT_DOUBLE_EQ(*all[0].effective_heads, 1);
  EXPECT_FALSE(all[0].top_ratio.has_value());
  EXPECT_FALSE(all[0].deposit.has_value());
  EXPECT_FALSE(all[1].deposits.has_value());
}

// Gini from its definition, the mean absolute difference over twice the mean, on random matrices.
TEST(IndicesTest, GiniIsTheMeanDifference) {
  std::mt19937 random(3);  // NOLINT: the same cases every time
  for (int round = 0; round < 50; ++round) {
    std::vector<std::int64_t> lost(1 + random() % 20);
    for (std::int64_t& count : lost) count = 100 + static_cast<std::int64_t>(random() % 400);
    double sum = 0;
    double differences = 0;
    for (const std::int64_t a : lost) {
      sum += static_cast<double>(a);
      for (const std::int64_t b : lost) differences += std::abs(static_cast<double>(a - b));
    }
    const auto k = static_cast<double>(lost.size());
    const double expected = differences / (k * k) / (2 * sum / k);
    EXPECT_NEAR(*IndicesOf(Matrix({Lost(lost)}, 1000, 950, 0))[0].gini, expected, 1e-12);
  }
}

}  // namespace
}  // namespace pelab::stats
