// Tests the simulation itself: a seed determines a history, and it finds planted bugs. The program
// `sim` checks that histories try what they are meant to (tests/sim/minima.h).
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/log.h"
#include "tests/sim/history.h"
#include "tests/sim/minima.h"

namespace pelab::sim {
namespace {

class SimTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { spdlog::set_level(spdlog::level::off); }

  // The first violation among so many seeds. From this seed on it comes soon, whatever is planted.
  static std::optional<std::string> Find(const Planted& planted, std::uint64_t seeds) {
    constexpr std::uint64_t kFirst = 2000;
    for (std::uint64_t seed = kFirst; seed < kFirst + seeds; ++seed) {
      const HistoryResult result = RunHistory({.seed = seed, .planted = planted});
      if (result.violation) return result.violation;
    }
    return std::nullopt;
  }
};

TEST_F(SimTest, ASeedIsAHistory) {
  std::uint64_t before = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const HistoryResult once = RunHistory({.seed = seed});
    const HistoryResult again = RunHistory({.seed = seed});
    EXPECT_EQ(once.hash, again.hash) << seed;
    EXPECT_EQ(once.counts.events, again.counts.events) << seed;
    EXPECT_NE(once.hash, before) << seed;
    before = once.hash;
  }
}

TEST_F(SimTest, HistoriesThatTryTooLittleAreNamed) {
  HistoryResult sum;
  EXPECT_EQ(TooRare(sum, 499).size(), 0U);
  EXPECT_EQ(TooRare(sum, 500).size(), 27U);
  sum.faults = 9999;
  sum.counts.sheets_played = 80;
  const std::vector<std::string> rare = TooRare(sum, 2000);
  EXPECT_EQ(rare.size(), 26U);
  EXPECT_EQ(rare.front(), "9999 faults in 2000 histories, which are meant to have at least 10000");
}

// Late events of lost attempts reach the attempt that replaced theirs, or are stored beside its
// events.
TEST_F(SimTest, FindsThatNothingIsFenced) {
  const auto found = Find({.no_fencing = true}, 300);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "superseded") || absl::StrContains(*found, "was refused") ||
              absl::StrContains(*found, "was not refused") ||
              absl::StrContains(*found, "has attempts"))
      << *found;
}

TEST_F(SimTest, FindsAnAcknowledgementBeforeTheCommit) {
  const auto found = Find({.acknowledge_before_commit = true}, 600);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "acknowledged") || absl::StrContains(*found, "gone") ||
              absl::StrContains(*found, "changed over a restart"))
      << *found;
}

TEST_F(SimTest, FindsThatLeasesAreNotSwept) {
  const auto found = Find({.no_lease_sweep = true}, 100);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "does not come to its end")) << *found;
}

// A worker that reports nothing, or the same again and again, keeps its attempt for ever.
TEST_F(SimTest, FindsThatSilenceIsNotSwept) {
  const auto found = Find({.no_silence_sweep = true}, 200);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "does not come to its end")) << *found;
}

TEST_F(SimTest, FindsThatWorkersSpeakForOthers) {
  const auto found = Find({.believes_anybody = true}, 100);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "of no attempt of its worker")) << *found;
}

TEST_F(SimTest, FindsThatEventsAreNotChecked) {
  const auto found = Find({.stores_unchecked = true}, 150);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "breaks a rule and was stored")) << *found;
}

TEST_F(SimTest, FindsThatATokenStandsForAnyRequest) {
  const auto found = Find({.ignores_requests = true}, 100);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "was used before for another request")) << *found;
}

TEST_F(SimTest, FindsThatAWorkerThatIsGoneKeepsItsAttempts) {
  const auto found = Find({.ignores_gone = true}, 50);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "is said to be gone")) << *found;
}

TEST_F(SimTest, FindsThatARoundSkipsASeed) {
  const auto found = Find({.skips_seeds = true}, 50);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "and the turn is at")) << *found;
}

TEST_F(SimTest, FindsThatARoundBeginsOrEndsOutOfTurn) {
  const auto found = Find({.takes_late_rounds = true}, 600);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "out of turn")) << *found;
}

TEST_F(SimTest, FindsThatARoundHasJobsOfCellsThatLeftIt) {
  const auto found = Find({.widens_rounds = true}, 100);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "jobs, and its sweep has")) << *found;
}

TEST_F(SimTest, FindsThatAnEValueIsWrongInTheTwelfthDigit) {
  const auto found = Find({.misjudges = true}, 50);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "undisturbed, sheet")) << *found;
}

TEST_F(SimTest, FindsThatAnOldWorkerGetsJobsWithFiles) {
  const auto found = Find({.believes_in_files = true}, 100);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::StrContains(*found, "fetches no files")) << *found;
}

}  // namespace
}  // namespace pelab::sim
