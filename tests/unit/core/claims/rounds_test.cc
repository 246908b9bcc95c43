// Rounds of made-up outcomes: which seeds come next, and which claims get none.
#include "core/claims/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/core/claims/claims_fixture.h"

namespace pelab::claims {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kTwoClaims[] = R"(
  - {id: a, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}}
  - {id: b, above: {metric: test_accuracy, a: pe=alibi, b: pe=nope}}
)";

// What every seed of the cells gives, for a sheet that is settled to its end.
using Values = double (*)(std::size_t cell, std::int64_t seed);

struct Settled {
  std::vector<Round> rounds;
  std::vector<std::vector<ClaimState>> states;  // after each round
};
Settled Settle(const BoundSheet& sheet, const Registration& registration, Values values) {
  Settled settled;
  std::vector<ClaimState> states(sheet.claims.size());
  Outcomes outcomes;
  for (;;) {
    const Round* last = settled.rounds.empty() ? nullptr : &settled.rounds.back();
    const auto round = NextRound(sheet, registration, last, states);
    if (!round) return settled;
    for (const std::size_t cell : round->cells) {
      for (std::int64_t seed = round->first_seed; seed < round->end_seed; ++seed) {
        Outcome outcome{.state = Outcome::State::kDone, .analyses = {"head_ablation"}};
        outcome.values["test_accuracy"] = outcome.values["deposit"] = values(cell, seed);
        outcomes.Set(cell, seed, outcome);
      }
    }
    EXPECT_THAT(OpenCellsOf(sheet, registration, *round, states, outcomes), IsEmpty());
    states = Conclude(sheet, registration, *round, states, outcomes);
    settled.rounds.push_back(*round);
    settled.states.push_back(states);
  }
}

double AllAgree(std::size_t cell, std::int64_t) {
  return cell == kRope ? 0.9 : cell == kAlibi ? 0.7 : 0.5;
}
double AlibiIsAnybodysGuess(std::size_t cell, std::int64_t seed) {
  return cell == kAlibi ? (seed % 2 == 0 ? 0.4 : 0.6) : AllAgree(cell, seed);
}

TEST(RoundsTest, ARoundGivesAllSlotsSomethingToDoButDoublesTheSeedsAtMost) {
  const BoundSheet sheet = Bound(kTwoClaims, kThreePes);
  const Settled settled = Settle(sheet, {.first_seed = 5, .fresh_from = 5, .slots = 8}, AllAgree);
  std::vector<std::int64_t> ends;
  for (const Round& round : settled.rounds) {
    EXPECT_THAT(round.cells, ElementsAre(kRope, kNope, kAlibi));
    ends.push_back(round.end_seed);
  }
  // 8 slots for 3 cells: 3 seeds a round, but 1 and 1 more before there are 2.
  EXPECT_THAT(ends, ElementsAre(6, 7, 9, 12, 15));
  EXPECT_EQ(settled.rounds.front().first_seed, 5);
  for (std::size_t i = 1; i < settled.rounds.size(); ++i) {
    EXPECT_EQ(settled.rounds[i].first_seed, settled.rounds[i - 1].end_seed);
    EXPECT_EQ(settled.rounds[i].number, settled.rounds[i - 1].number + 1);
  }
  // Of four hypotheses, two are rejected at 4 / (0.05 * 2) = 40: 8 of 8 seeds give 56.8.
  for (const ClaimState& state : settled.states.back()) {
    EXPECT_EQ(state.standing, Standing::kDecided);
    EXPECT_EQ(state.judgement.verdict, Verdict::kHolds);
    EXPECT_EQ(state.e.seeds, 10);
  }
}

TEST(RoundsTest, OneSlotTakesOneSeedARound) {
  const BoundSheet sheet = Bound(kTwoClaims, kThreePes);
  const Settled settled = Settle(sheet, {.slots = 1}, AllAgree);
  EXPECT_THAT(settled.rounds, SizeIs(8)) << "e(8, 8) = 56.8 is the first above 40";
}

TEST(RoundsTest, ADecidedClaimGetsNoMoreSeedsAndKeepsItsEvidence) {
  const BoundSheet sheet = Bound(kTwoClaims, kThreePes);
  const Settled settled = Settle(sheet, {.slots = 1}, AlibiIsAnybodysGuess);
  bool decided = false;
  for (std::size_t i = 0; i < settled.rounds.size(); ++i) {
    const std::vector<ClaimState>& after = settled.states[i];
    if (i > 0 && settled.states[i - 1][1].standing != Standing::kOpen) {
      EXPECT_THAT(settled.rounds[i].cells, ElementsAre(kRope, kNope)) << "b is not open any more";
      EXPECT_EQ(after[1].e, settled.states[i - 1][1].e);
    }
    decided = decided || after[0].standing == Standing::kDecided;
  }
  EXPECT_TRUE(decided);
  const ClaimState& guess = settled.states.back()[1];
  EXPECT_EQ(guess.standing, Standing::kFutile);
  EXPECT_EQ(guess.judgement.verdict, Verdict::kUndecided);
  EXPECT_LT(guess.e.seeds, 40);
}

TEST(RoundsTest, TheLastSeedIsTheLastOfMaxSeeds) {
  const BoundSheet sheet = Bound(kTwoClaims, kThreePes, "max_seeds: 5\n");
  // With five seeds nothing can be decided, which is clear from the first one on.
  const Settled settled = Settle(sheet, {.slots = 1}, AllAgree);
  ASSERT_THAT(settled.rounds, SizeIs(1));
  EXPECT_EQ(settled.states[0][0].standing, Standing::kFutile);
}

TEST(RoundsTest, SeedsEndWherePilotsBegin) {
  const BoundSheet sheet = Bound(kTwoClaims, kThreePes);
  const Registration registration{.first_seed = kFirstPilotSeed - 2, .slots = 100};
  const Settled settled = Settle(sheet, registration, AllAgree);
  ASSERT_THAT(settled.rounds, SizeIs(2));
  EXPECT_EQ(settled.rounds.back().end_seed, kFirstPilotSeed);
  EXPECT_EQ(settled.states.back()[0].standing, Standing::kAllSeeds);
}

TEST(RoundsTest, OpenCellsAreThoseWithoutAnOutcomeOrAnAblationThatAClaimNeeds) {
  const BoundSheet sheet = Bound(R"(
  - {id: a, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}}
  - {id: d, most: {metric: deposit, cell: pe=rope}}
)",
                                 kThreePes);
  const std::vector<ClaimState> open(2);
  const auto round = NextRound(sheet, {.slots = 1}, nullptr, open);
  ASSERT_TRUE(round.has_value());
  Outcomes outcomes;
  outcomes.Set(kRope, 0, {.state = Outcome::State::kDone});
  outcomes.Set(kNope, 0, {.state = Outcome::State::kDone});
  const auto found = OpenCellsOf(sheet, {}, *round, open, outcomes);
  ASSERT_THAT(found, SizeIs(1)) << "nope needs no ablation";
  EXPECT_EQ(found[0].configuration, kRope);
  EXPECT_EQ(found[0].lacks, "deposit");
  std::vector<ClaimState> without_ablation = open;
  without_ablation[1].standing = Standing::kFutile;
  EXPECT_THAT(OpenCellsOf(sheet, {}, *round, without_ablation, outcomes), IsEmpty());
  outcomes.Set(kRope, 0, {.state = Outcome::State::kFailed});
  EXPECT_THAT(OpenCellsOf(sheet, {}, *round, open, outcomes), IsEmpty())
      << "a failure is an outcome";
}

TEST(RoundsTest, ASeedOfAnEarlierRoundThatIsQueuedAgainIsWaitedFor) {
  const BoundSheet sheet = Bound(kTwoClaims, kThreePes);
  const Registration registration{.first_seed = 5, .slots = 1};
  const std::vector<ClaimState> open(2);
  const Round third{.number = 3, .first_seed = 7, .end_seed = 8, .cells = {kRope, kNope, kAlibi}};
  Outcomes outcomes;
  for (const std::size_t cell : third.cells) {
    for (const std::int64_t seed : {5, 6, 7}) {
      outcomes.Set(cell, seed, {.state = Outcome::State::kDone});
    }
  }
  EXPECT_THAT(OpenCellsOf(sheet, registration, third, open, outcomes), IsEmpty());
  outcomes.Set(kNope, 5, {});
  const auto found = OpenCellsOf(sheet, registration, third, open, outcomes);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].configuration, kNope);
  EXPECT_EQ(found[0].seed, 5);
}

TEST(RoundsTest, CellsThatOnlyAClaimPutAsideNeedsAreNotWaitedFor) {
  const BoundSheet sheet = Bound(kTwoClaims, kThreePes);
  std::vector<ClaimState> states(2);
  const Round round{.number = 1, .first_seed = 0, .end_seed = 1, .cells = {kRope, kNope, kAlibi}};
  Outcomes outcomes;
  SetAccuracy(outcomes, kRope, {0.9});
  SetAccuracy(outcomes, kNope, {0.5});
  EXPECT_THAT(OpenCellsOf(sheet, {}, round, states, outcomes), SizeIs(1)) << "alibi's job";
  states[1].standing = Standing::kPutAside;
  EXPECT_THAT(OpenCellsOf(sheet, {}, round, states, outcomes), IsEmpty());
  const auto after = Conclude(sheet, {.slots = 1}, round, states, outcomes);
  EXPECT_EQ(after[0].e.seeds, 1);
  EXPECT_EQ(after[1].e, states[1].e);
  EXPECT_EQ(after[1].standing, Standing::kPutAside);
  const auto next = NextRound(sheet, {.slots = 1}, &round, after);
  ASSERT_TRUE(next.has_value());
  EXPECT_THAT(next->cells, UnorderedElementsAre(kRope, kNope));
}

double LearnsNothing(std::size_t, std::int64_t) { return 0.1; }

TEST(RoundsTest, AClaimThatIsNeverEligibleIsGivenUp) {
  const BoundSheet sheet =
      Bound("  - {id: d, most: {metric: deposit, cell: pe=rope}}\n", kThreePes);
  const Settled settled = Settle(sheet, {.slots = 1}, LearnsNothing);
  const ClaimState& end = settled.states.back()[0];
  EXPECT_EQ(end.standing, Standing::kFutile);
  EXPECT_EQ(end.judgement.verdict, Verdict::kNotEligible);
  EXPECT_EQ(end.e.eligible, 0);
  EXPECT_LT(end.e.seeds, 20);
}

// Two claims that lower the threshold for a third one, which was given up.
TEST(RoundsTest, AClaimThatWasGivenUpIsDecidedIfOthersLowerTheThreshold) {
  const BoundSheet sheet = Bound(kTwoClaims, kThreePes);
  std::vector<ClaimState> before(2);
  before[1].standing = Standing::kFutile;
  before[1].e = {.seeds = 8, .eligible = 8, .log_holds = std::log(50), .log_fails = -1};
  Outcomes outcomes;
  SetAccuracy(outcomes, kRope, std::vector<double>(10, 0.9));
  SetAccuracy(outcomes, kNope, std::vector<double>(10, 0.5));
  const Round round{.number = 10, .first_seed = 9, .end_seed = 10, .cells = {kRope, kNope}};
  const auto after = Conclude(sheet, {.slots = 1}, round, before, outcomes);
  EXPECT_EQ(after[0].standing, Standing::kDecided);
  EXPECT_EQ(after[1].standing, Standing::kDecided);
  EXPECT_EQ(after[1].judgement.verdict, Verdict::kHolds);
  EXPECT_EQ(after[1].e, before[1].e);
}

TEST(RoundsTest, SeedsThatWereStoredBeforeAreExploratory) {
  EXPECT_EQ(ExploratorySeeds({.first_seed = 4, .fresh_from = 4}, 10), 0);
  EXPECT_EQ(ExploratorySeeds({.first_seed = 0, .fresh_from = 4}, 10), 4);
  EXPECT_EQ(ExploratorySeeds({.first_seed = 0, .fresh_from = 4}, 3), 3);
}

TEST(RoundsTest, NamesAreReadBack) {
  for (const Standing standing : {Standing::kOpen, Standing::kDecided, Standing::kAllSeeds,
                                  Standing::kFutile, Standing::kPutAside}) {
    EXPECT_EQ(ParseStanding(NameOf(standing)), standing);
  }
  EXPECT_FALSE(ParseStanding("closed").has_value());
}

}  // namespace
}  // namespace pelab::claims
