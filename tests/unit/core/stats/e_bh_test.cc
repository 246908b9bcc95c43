#include "core/stats/e_bh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace pelab::stats {
namespace {

using testing::ElementsAre;

std::vector<double> Logs(const std::vector<double>& values) {
  std::vector<double> logs;
  for (const double value : values) logs.push_back(std::log(value));
  return logs;
}

// With K = 4 and a rate of 0.05 the thresholds are 80, 40, 26.7 and 20.
TEST(EBhTest, RejectsTheMostThatMeetTheirThreshold) {
  const Rejections three = EBh(Logs({30, 1, 45, 60}), 0.05);
  EXPECT_THAT(three.rejected, ElementsAre(true, false, true, true));
  EXPECT_EQ(three.count, 3U);
  EXPECT_NEAR(std::exp(three.log_threshold), 80.0 / 3, 1e-12);
  EXPECT_NEAR(std::exp(three.log_next_threshold), 20, 1e-12);
}

TEST(EBhTest, OneThatIsNotEnoughAloneMayBeEnoughWithOthers) {
  EXPECT_EQ(EBh(Logs({45, 1, 1, 1}), 0.05).count, 0U);
  EXPECT_THAT(EBh(Logs({45, 45, 1, 1}), 0.05).rejected, ElementsAre(true, true, false, false));
}

TEST(EBhTest, WithNoneRejectedTheThresholdIsThatOfTheFirst) {
  const Rejections none = EBh(Logs({79, 1, 2, 3}), 0.05);
  EXPECT_THAT(none.rejected, ElementsAre(false, false, false, false));
  EXPECT_NEAR(std::exp(none.log_threshold), 80, 1e-12);
  EXPECT_NEAR(std::exp(none.log_next_threshold), 80, 1e-12);
  EXPECT_EQ(EBh({}, 0.05).count, 0U);
}

TEST(EBhTest, AllOfThem) {
  const Rejections all = EBh(Logs({20.1, 20.2, 20.5, 21}), 0.05);
  EXPECT_EQ(all.count, 4U);
  EXPECT_NEAR(std::exp(all.log_next_threshold), 20, 1e-12);
}

}  // namespace
}  // namespace pelab::stats
