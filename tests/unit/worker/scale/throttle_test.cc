#include "worker/scale/throttle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::scale {
namespace {

using testing::HasSubstr;

TEST(ThrottleTest, EachRefusalWaitsLonger) {
  Throttle throttle;
  absl::Duration now = absl::Hours(1);
  EXPECT_EQ(throttle.WhyNot(now), "");
  for (const int minutes : {0, 1, 15, 30, 60, 60}) {
    throttle.Refused("no such partition", now);
    if (minutes > 0) {
      EXPECT_THAT(throttle.WhyNot(now + absl::Minutes(minutes) - absl::Seconds(1)),
                  HasSubstr("refused: no such partition; tried again in 1s"));
    }
    now += absl::Minutes(minutes);
    EXPECT_EQ(throttle.WhyNot(now), "") << minutes;
  }
  throttle.Accepted();
  throttle.Refused("busy", now);
  EXPECT_EQ(throttle.WhyNot(now), "") << "it begins anew";
}

TEST(ThrottleTest, PausesAfterTenRefusals) {
  Throttle throttle;
  absl::Duration now = absl::Hours(1);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(throttle.paused());
    throttle.Refused("no such partition", now);
    now += absl::Hours(2);
  }
  EXPECT_TRUE(throttle.paused());
  EXPECT_THAT(throttle.WhyNot(now), HasSubstr("paused: 10 submissions in a row were refused"));
}

TEST(ThrottleTest, PausesAfterThreeWorkersThatNeverConnected) {
  Throttle throttle;
  throttle.NeverSaidHello("1", "FAILED");
  throttle.NeverSaidHello("2", "FAILED");
  throttle.SaidHello();
  throttle.NeverSaidHello("3", "FAILED");
  throttle.NeverSaidHello("4", "FAILED");
  EXPECT_FALSE(throttle.paused());
  throttle.NeverSaidHello("5", "NODE_FAIL");
  EXPECT_TRUE(throttle.paused());
  EXPECT_THAT(throttle.WhyNot(absl::Hours(100)), HasSubstr("the last of 5 (NODE_FAIL)"));
}

}  // namespace
}  // namespace pelab::scale
