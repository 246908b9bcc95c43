#include "worker/agent/stall_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace pelab::agent {
namespace {

using ::testing::HasSubstr;

event::TrainerLine Hello() {
  event::FactLine line;
  line.event.mutable_started()->set_epochs(9);
  return line;
}
event::TrainerLine Epoch() {
  event::FactLine line;
  line.event.mutable_epoch()->set_epoch(0);
  return line;
}

class StallWatchTest : public testing::Test {
 protected:
  void Use(std::optional<absl::Duration> timeout) { watch_.emplace(timeout, now_); }
  void Say(const event::TrainerLine& line) { watch_->OnEvent(line, now_); }
  // Returns how long the trainer may be silent until it counts as hung; a day at most. Calls Look
  // as often as it asks to be called.
  absl::Duration Silence(bool listening = true) {
    const absl::Duration begin = now_;
    while (now_ - begin < absl::Hours(24)) {
      const auto next = watch_->Look(now_, listening);
      if (!next.ok()) {
        complaint_ = std::string(next.status().message());
        EXPECT_TRUE(absl::IsDeadlineExceeded(next.status()));
        return now_ - begin;
      }
      now_ += std::min(*next, absl::Hours(24));
    }
    return absl::InfiniteDuration();
  }

  absl::Duration now_ = absl::Hours(5);
  std::optional<StallWatch> watch_;
  std::string complaint_;
};

TEST_F(StallWatchTest, GivesTenMinutesUntilTheHello) {
  Use({});
  EXPECT_EQ(Silence(), absl::Minutes(10));
  EXPECT_EQ(complaint_,
            "the trainer said nothing for 10 min since it was started, not even its hello; stopped "
            "by --attempt-timeout");
}

TEST_F(StallWatchTest, GivesTwentyTimesTheLongestEpochAndTenMinutesAtLeast) {
  Use({});
  Say(Hello());
  now_ += absl::Seconds(5);
  Say(Epoch());
  EXPECT_EQ(Silence(), absl::Minutes(10));
  EXPECT_THAT(complaint_, HasSubstr("for 10 min (its longest epoch took 5 s); stopped by"));

  Use({});
  Say(Hello());
  now_ += absl::Seconds(36);
  Say(Epoch());
  now_ += absl::Seconds(10);
  Say(Epoch());
  EXPECT_EQ(Silence(), absl::Minutes(12)) << "20 x 36 s";
  EXPECT_THAT(complaint_, HasSubstr("for 12 min (its longest epoch took 36 s)"));
}

TEST_F(StallWatchTest, AFixedTimeHoldsAllTheWayAndNoneNeverEnds) {
  Use(absl::Seconds(3));
  EXPECT_EQ(Silence(), absl::Seconds(3));
  Say(Hello());
  now_ += absl::Seconds(2);
  Say(Epoch());
  EXPECT_EQ(Silence(), absl::Seconds(3));
  Use(absl::InfiniteDuration());
  EXPECT_EQ(Silence(), absl::InfiniteDuration());
}

TEST_F(StallWatchTest, ATrainerThatIsHeldBackIsNotSilent) {
  Use(absl::Seconds(3));
  EXPECT_EQ(Silence(/*listening=*/false), absl::InfiniteDuration());
}

// The whole host slept, or everything on it was suspended with SIGSTOP.
TEST_F(StallWatchTest, TimeInWhichThisProcessDidNotRunDoesNotCount) {
  Use({});
  Say(Hello());
  ASSERT_THAT(watch_->Look(now_, true), IsOk());
  now_ += absl::Hours(8);
  EXPECT_THAT(watch_->Look(now_, true), IsOk());
  EXPECT_GE(Silence(), absl::Minutes(9));
}

}  // namespace
}  // namespace pelab::agent
