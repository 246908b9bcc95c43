// Values from scipy 1.10: stats.ttest_rel and stats.binomtest.
#include "core/stats/paired.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/stats/bootstrap.h"

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
  // By tests/golden/test_aggregates.py, which has the generator from its description.
  const auto interval = BootstrapInterval(std::vector<double>{0.91, 0.93, 0.88, 0.95, 0.90});
  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR(interval->low, 0.8939999999999999, 1e-12);
  EXPECT_NEAR(interval->high, 0.9340499999999992, 1e-12);
  const auto again = BootstrapInterval(std::vector<double>{0.95, 0.88, 0.93, 0.90, 0.91});
  EXPECT_EQ(interval->low, again->low);
  EXPECT_EQ(interval->high, again->high);
}

TEST(BootstrapTest, OneValueHasNoneAndEqualValuesHaveNoWidth) {
  EXPECT_FALSE(BootstrapInterval(std::vector<double>{0.5}).has_value());
  const auto interval = BootstrapInterval(std::vector<double>{0.5, 0.5, 0.5});
  EXPECT_EQ(interval->low, 0.5);
  EXPECT_EQ(interval->high, 0.5);
}

}  // namespace
}  // namespace pelab::stats
