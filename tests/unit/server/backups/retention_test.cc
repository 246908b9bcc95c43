// Which backups --keep keeps. The expected lists are worked out by hand with a calendar: 2026-11-26
// is a Thursday, so its week begins on Monday 2026-11-23.
#include "server/backups/retention.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace pelab::backups {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "2026-11-26 08:15"
absl::Time At(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime("%Y-%m-%d %H:%M", text, &time, &error)) << error;
  return time;
}

std::vector<std::string> Removed(const std::vector<std::string>& times, const std::string& keep,
                                 const std::string& now = "2026-11-26 23:59") {
  std::vector<absl::Time> parsed;
  for (const std::string& time : times) parsed.push_back(At(time));
  const auto retention = ParseRetention(keep);
  EXPECT_TRUE(retention.ok()) << retention.status();
  std::vector<std::string> removed;
  for (const absl::Time time : Surplus(parsed, *retention, At(now))) {
    removed.push_back(absl::FormatTime("%Y-%m-%d %H:%M", time, absl::UTCTimeZone()));
  }
  return removed;
}

TEST(RetentionTest, KeepsTheNewestOfEachDay) {
  EXPECT_THAT(Removed({"2026-11-26 08:00", "2026-11-26 20:00", "2026-11-25 00:00",
                       "2026-11-25 23:59", "2026-11-24 12:00"},
                      "2d"),
              ElementsAre("2026-11-24 12:00", "2026-11-25 00:00", "2026-11-26 08:00"));
}

TEST(RetentionTest, DaysEndAtMidnightUtc) {
  EXPECT_THAT(Removed({"2026-11-25 23:59", "2026-11-26 00:00"}, "2d"), IsEmpty());
  EXPECT_THAT(Removed({"2026-11-26 00:00", "2026-11-26 00:01"}, "2d"),
              ElementsAre("2026-11-26 00:00"));
}

// Days without a backup do not count: after a month without the coordinator, nothing more goes.
TEST(RetentionTest, DaysWithoutABackupDoNotCount) {
  EXPECT_THAT(Removed({"2026-09-01 12:00", "2026-10-20 12:00", "2026-11-26 12:00"}, "3d"),
              IsEmpty());
  EXPECT_THAT(Removed({"2026-09-01 12:00", "2026-10-20 12:00", "2026-11-26 12:00"}, "2d"),
              ElementsAre("2026-09-01 12:00"));
}

TEST(RetentionTest, WeeksBeginOnMonday) {
  // Sunday the 22nd ends the week before; Monday the 23rd and Thursday the 26th share one.
  EXPECT_THAT(Removed({"2026-11-15 23:59", "2026-11-16 00:00", "2026-11-22 23:59",
                       "2026-11-23 00:00", "2026-11-26 12:00"},
                      "2w"),
              ElementsAre("2026-11-15 23:59", "2026-11-16 00:00", "2026-11-23 00:00"));
}

TEST(RetentionTest, WeeksBefore1970HaveTheirMondaysToo) {
  // 1969-12-29 was a Monday, and 1969-12-28 a Sunday.
  EXPECT_THAT(Removed({"1969-12-28 12:00", "1969-12-29 12:00", "1970-01-04 12:00"}, "2w"),
              ElementsAre("1969-12-29 12:00"));
}

TEST(RetentionTest, ABackupStaysIfAnyRuleKeepsIt) {
  // By day: the 26th and 25th. By week: the 26th (its week's newest) and Sunday the 22nd. By
  // number: 20:00 and 08:00 of the 26th.
  EXPECT_THAT(
      Removed({"2026-11-14 12:00", "2026-11-21 12:00", "2026-11-22 12:00", "2026-11-24 12:00",
               "2026-11-25 12:00", "2026-11-26 08:00", "2026-11-26 20:00"},
              "2,2d,2w"),
      ElementsAre("2026-11-14 12:00", "2026-11-21 12:00", "2026-11-24 12:00"));
}

TEST(RetentionTest, TheDefaultOverFortyDailyBackups) {
  // 08:00 of each day from 2026-10-18 (a Sunday) to 2026-11-26. By day: the 20th to the 26th of
  // November. By week: the 26th, and the Sundays 22nd, 15th and 8th. So the 8th and the 15th stay
  // of the days before the 20th.
  std::vector<std::string> all;
  std::vector<std::string> expected;
  for (int day = 0; day < 40; ++day) {
    const absl::Time time = At("2026-10-18 08:00") + day * absl::Hours(24);
    all.push_back(absl::FormatTime("%Y-%m-%d %H:%M", time, absl::UTCTimeZone()));
    const std::string date = all.back().substr(0, 10);
    if (date < "2026-11-20" && date != "2026-11-08" && date != "2026-11-15") {
      expected.push_back(all.back());
    }
  }
  ASSERT_EQ(all.back(), "2026-11-26 08:00");
  EXPECT_EQ(Removed(all, "7d,4w"), expected);
}

TEST(RetentionTest, TheNewestAlwaysStays) {
  EXPECT_THAT(Surplus({At("2020-01-01 00:00"), At("2020-01-02 00:00")}, Retention{},
                      At("2026-11-26 12:00")),
              ElementsAre(At("2020-01-01 00:00")));
  EXPECT_THAT(Surplus({}, Retention{.newest = 1}, At("2026-11-26 12:00")), IsEmpty());
}

// A backup that was made while the clock was wrong neither goes nor makes others go.
TEST(RetentionTest, LaterOnesThanNowDoNotCount) {
  EXPECT_THAT(Removed({"2031-01-01 00:00", "2026-11-26 10:00", "2026-11-26 11:00"}, "1",
                      "2026-11-26 12:00"),
              ElementsAre("2026-11-26 10:00"));
}

TEST(RetentionTest, ReadsRules) {
  const auto keep = ParseRetention("7d,4w");
  ASSERT_TRUE(keep.ok());
  EXPECT_EQ(keep->days, 7);
  EXPECT_EQ(keep->weeks, 4);
  EXPECT_EQ(keep->newest, 0);
  EXPECT_EQ(ParseRetention("30")->newest, 30);
  EXPECT_EQ(ParseRetention("10000w")->weeks, 10'000);
}

TEST(RetentionTest, RefusesWhatIsNoRule) {
  for (const std::string text : {"", "d", "7x", "0", "0d", "-1", "7d,", ",7d", "7d,3d", "1,2",
                                 "10001d", "99999999999999999999", "7 d", "+7", "7D", "1.5w"}) {
    const auto keep = ParseRetention(text);
    ASSERT_FALSE(keep.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(keep.status()));
    EXPECT_THAT(std::string(keep.status().message()),
                HasSubstr("invalid --keep \"" + text + "\"; allowed: a number of backups (30)"));
  }
}

}  // namespace
}  // namespace pelab::backups
