#include "core/stats/distributions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace pelab::stats {
namespace {

TEST(StudentTTest, QuantilesOfTheTables) {
  struct Known {
    double p, degrees, t;
  };
  // Published tables of Student's t give these values to three places. The further digits follow
  // from the closed forms below (1, 2 and 4 degrees of freedom) or from an independent 30-digit
  // evaluation.
  const Known known[] = {{0.975, 1, 12.706204736174698},   {0.975, 2, 4.302652729749464},
                         {0.975, 3, 3.1824463052837078},   {0.975, 4, 2.7764451051977934},
                         {0.975, 5, 2.5705818356363146},   {0.975, 9, 2.2621571627982053},
                         {0.975, 10, 2.2281388519862744},  {0.975, 30, 2.0422724563012378},
                         {0.975, 100, 1.9839715185235518}, {0.995, 4, 4.604094871349993},
                         {0.95, 7, 1.8945786050900073}};
  for (const Known& k : known) {
    EXPECT_NEAR(StudentTQuantile(k.p, k.degrees), k.t, 1e-9) << k.p << " " << k.degrees;
    EXPECT_NEAR(StudentTQuantile(1 - k.p, k.degrees), -k.t, 1e-9) << k.p << " " << k.degrees;
  }
}

TEST(StudentTTest, ClosedForms) {
  for (double p : {0.001, 0.025, 0.2, 0.4999, 0.6, 0.9, 0.975, 0.9995}) {
    const double one = std::tan(std::numbers::pi * (p - 0.5));
    EXPECT_NEAR(StudentTQuantile(p, 1), one, 1e-10 * std::max(1.0, std::fabs(one))) << p;
    const double alpha = 4 * p * (1 - p);
    const double two = 2 * (p - 0.5) * std::sqrt(2 / alpha);
    EXPECT_NEAR(StudentTQuantile(p, 2), two, 1e-10 * std::max(1.0, std::fabs(two))) << p;
    const double q = std::cos(std::acos(std::sqrt(alpha)) / 3) / std::sqrt(alpha);
    const double four = (p < 0.5 ? -1 : 1) * 2 * std::sqrt(q - 1);
    EXPECT_NEAR(StudentTQuantile(p, 4), four, 1e-7 * std::max(1.0, std::fabs(four))) << p;
  }
}

TEST(StudentTTest, CdfUndoesTheQuantile) {
  for (double degrees : {1.0, 2.0, 3.5, 19.0, 999.0, 1e6}) {
    for (double p : {1e-9, 0.01, 0.3, 0.5, 0.77, 0.999}) {
      EXPECT_NEAR(StudentTCdf(StudentTQuantile(p, degrees), degrees), p,
                  degrees < 1e4 ? 1e-12 : 1e-9)
          << degrees << " " << p;
    }
  }
}

TEST(StudentTTest, ApproachesTheNormalDistribution) {
  EXPECT_NEAR(StudentTQuantile(0.975, 1e7), 1.959963984540054, 1e-6);
}

TEST(StudentTTest, OutsideTheDomainIsNaN) {
  EXPECT_TRUE(std::isnan(StudentTQuantile(0, 3)));
  EXPECT_TRUE(std::isnan(StudentTQuantile(1, 3)));
  EXPECT_TRUE(std::isnan(StudentTQuantile(0.9, 0)));
  EXPECT_TRUE(std::isnan(StudentTCdf(1, -1)));
}

TEST(BinomialTest, ClosedForms) {
  for (double share : {0.0, 0.01, 0.3, 0.5, 0.9, 1.0}) {
    const double miss = 1 - share;
    EXPECT_NEAR(BinomialCdf(0, 1, share), miss, 1e-14);
    EXPECT_NEAR(BinomialCdf(1, 2, share), 1 - share * share, 1e-14);
    EXPECT_NEAR(BinomialCdf(0, 3, share), miss * miss * miss, 1e-14);
    // 1 - p^2 (6 - 8p + 3p^2)
    EXPECT_NEAR(BinomialCdf(1, 4, share), 1 - share * share * (6 - 8 * share + 3 * share * share),
                1e-14);
    EXPECT_EQ(BinomialCdf(4, 4, share), 1);
  }
  EXPECT_EQ(BinomialCdf(0, 0, 0.5), 1);
  EXPECT_TRUE(std::isnan(BinomialCdf(1, -1, 0.5)));
  EXPECT_TRUE(std::isnan(BinomialCdf(1, 2, 1.5)));
}

}  // namespace
}  // namespace pelab::stats
