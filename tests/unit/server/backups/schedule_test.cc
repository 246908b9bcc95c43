// When a backup is due, on a clock that only the test advances.
#include "server/backups/schedule.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace pelab::backups {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);

class ScheduleTest : public testing::Test {
 protected:
  Schedule Make(absl::Duration every, std::optional<absl::Time> newest) {
    return Schedule(clock_, every, newest, [] { return 0.5; });  // pauses are 3/4 of their length
  }
  FakeClock clock_;
};

TEST_F(ScheduleTest, WithoutABackupOneIsDueAtOnce) {
  EXPECT_EQ(Make(kDay, std::nullopt).Wait(), absl::ZeroDuration());
}

TEST_F(ScheduleTest, ARestartNeitherDelaysNorRepeats) {
  EXPECT_EQ(Make(kDay, clock_.Wall() - absl::Hours(23)).Wait(), absl::Hours(1));
  EXPECT_EQ(Make(kDay, clock_.Wall()).Wait(), kDay);
  EXPECT_EQ(Make(kDay, clock_.Wall() - absl::Hours(25)).Wait(), absl::ZeroDuration());
}

TEST_F(ScheduleTest, ABackupFromTheFutureDelaysNothing) {
  EXPECT_EQ(Make(kDay, clock_.Wall() + absl::Hours(1)).Wait(), absl::ZeroDuration());
}

TEST_F(ScheduleTest, TheNextIsDueAfterTheBeginOfTheLast) {
  Schedule schedule = Make(absl::Hours(1), std::nullopt);
  schedule.Begin();
  clock_.Advance(absl::Minutes(10));  // how long it takes
  schedule.Succeeded();
  EXPECT_EQ(schedule.Wait(), absl::Minutes(50));
  clock_.Advance(absl::Minutes(49));
  EXPECT_EQ(schedule.Wait(), absl::Minutes(1));
  clock_.Advance(absl::Minutes(2));
  EXPECT_EQ(schedule.Wait(), absl::ZeroDuration());
}

TEST_F(ScheduleTest, FailuresAreTriedAgainEverMoreRarely) {
  Schedule schedule = Make(kDay, std::nullopt);
  for (const double minutes : {0.75, 1.5, 3.0, 6.0, 12.0, 24.0, 45.0, 45.0}) {
    schedule.Begin();
    EXPECT_EQ(schedule.Failed(), absl::Minutes(minutes));
    EXPECT_EQ(schedule.Wait(), absl::Minutes(minutes));
    clock_.Advance(absl::Minutes(minutes));
    EXPECT_EQ(schedule.Wait(), absl::ZeroDuration());
  }
  schedule.Begin();
  schedule.Succeeded();
  EXPECT_EQ(schedule.Wait(), kDay);
  clock_.Advance(kDay);
  schedule.Begin();
  EXPECT_EQ(schedule.Failed(), absl::Minutes(0.75)) << "a success starts the pauses anew";
}

TEST_F(ScheduleTest, APauseIsNeverLongerThanTheInterval) {
  Schedule schedule = Make(absl::Seconds(2), std::nullopt);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(schedule.Failed(), absl::Seconds(1.5));
}

}  // namespace
}  // namespace pelab::backups
