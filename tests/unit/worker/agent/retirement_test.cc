#include "worker/agent/retirement.h"

#include <gtest/gtest.h>

namespace pelab::agent {
namespace {

constexpr absl::Duration kStart = absl::Hours(100);
constexpr absl::Duration kNoEpoch = absl::ZeroDuration();

TEST(Retirement, WithoutLimitsADaemonStays) {
  Retirement retirement({}, kStart);
  EXPECT_EQ(retirement.end(), absl::InfiniteDuration());
  EXPECT_EQ(retirement.Look(kStart + absl::Hours(10000), false, kNoEpoch),
            v1::Goodbye::REASON_UNSPECIFIED);
  EXPECT_EQ(retirement.NextLook(), absl::InfiniteDuration());
}

TEST(Retirement, IdleTimeBeginsAnewWithEveryJob) {
  Retirement retirement({.idle_exit = absl::Minutes(5)}, kStart);
  const auto look = [&](int seconds, bool busy) {
    return retirement.Look(kStart + absl::Seconds(seconds), busy, kNoEpoch);
  };
  EXPECT_EQ(look(0, false), v1::Goodbye::REASON_UNSPECIFIED);
  EXPECT_EQ(look(299, false), v1::Goodbye::REASON_UNSPECIFIED);
  EXPECT_EQ(retirement.NextLook(), kStart + absl::Seconds(300));
  EXPECT_EQ(look(299, true), v1::Goodbye::REASON_UNSPECIFIED);
  EXPECT_EQ(look(5000, true), v1::Goodbye::REASON_UNSPECIFIED) << "it works";
  EXPECT_EQ(look(5299, false), v1::Goodbye::REASON_UNSPECIFIED);
  EXPECT_EQ(look(5300, false), v1::Goodbye::IDLE);
}

TEST(Retirement, TheTimeThatADaemonNeedsToStartIsNotIdle) {
  Retirement retirement({.idle_exit = absl::Seconds(2)}, kStart);
  EXPECT_EQ(retirement.Look(kStart + absl::Seconds(30), false, kNoEpoch),
            v1::Goodbye::REASON_UNSPECIFIED);
  EXPECT_EQ(retirement.Look(kStart + absl::Seconds(32), false, kNoEpoch), v1::Goodbye::IDLE);
}

TEST(Retirement, AtTheMarginOrTwoEpochsBeforeTheLimit) {
  const RetirementLimits limits = {.time_limit = absl::Hours(1), .margin = absl::Minutes(2)};
  Retirement retirement(limits, kStart);
  EXPECT_EQ(retirement.end(), kStart + absl::Hours(1));
  const auto look = [&](double minutes, absl::Duration epoch) {
    return retirement.Look(kStart + absl::Minutes(minutes), true, epoch);
  };
  EXPECT_EQ(look(57.9, kNoEpoch), v1::Goodbye::REASON_UNSPECIFIED);
  EXPECT_EQ(retirement.NextLook(), kStart + absl::Minutes(58));
  EXPECT_EQ(look(57.9, absl::Seconds(60)), v1::Goodbye::REASON_UNSPECIFIED);
  EXPECT_EQ(look(49.9, absl::Minutes(5)), v1::Goodbye::REASON_UNSPECIFIED);
  EXPECT_EQ(look(50, absl::Minutes(5)), v1::Goodbye::TIME_LIMIT);
  EXPECT_EQ(look(58, kNoEpoch), v1::Goodbye::TIME_LIMIT);
}

TEST(Retirement, TheMarginIsAtMostHalfOfTheLimit) {
  Retirement retirement({.time_limit = absl::Minutes(1), .margin = absl::Minutes(2)}, kStart);
  EXPECT_EQ(retirement.margin(), absl::Seconds(30));
  EXPECT_EQ(retirement.Look(kStart + absl::Seconds(29), true, kNoEpoch),
            v1::Goodbye::REASON_UNSPECIFIED);
  EXPECT_EQ(retirement.Look(kStart + absl::Seconds(30), true, kNoEpoch), v1::Goodbye::TIME_LIMIT);
}

TEST(Retirement, TheLimitCountsForAnIdleDaemonToo) {
  Retirement retirement({.idle_exit = absl::Hours(1), .time_limit = absl::Minutes(10)}, kStart);
  EXPECT_EQ(retirement.Look(kStart + absl::Minutes(8), false, kNoEpoch), v1::Goodbye::TIME_LIMIT);
}

}  // namespace
}  // namespace pelab::agent
