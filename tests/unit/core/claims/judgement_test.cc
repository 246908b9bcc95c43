// Seeds with made-up values: what they say, and what is decided.
#include "core/claims/judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/claims/evidence.h"
#include "tests/unit/core/claims/claims_fixture.h"

namespace pelab::claims {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kAbove[] =
    "  - {id: a, above: {metric: test_accuracy, a: pe=rope, b: pe=nope, by: 0.1}}\n";

TEST(EvidenceTest, CountsSignsBeyondTheMarginAndTiesForNeitherSide) {
  const BoundSheet sheet = Bound(kAbove, kThreePes);
  Outcomes outcomes;
  SetAccuracy(outcomes, kRope, {0.75, 0.75, 0.5, 0.625, 0.75});
  SetAccuracy(outcomes, kNope, {0.25, 0.5, 0.5, 0.525, 0.25});
  const Evidence evidence = Weigh(sheet, sheet.claims[0], outcomes, 0, 40);
  EXPECT_THAT(evidence.seeds, SizeIs(5));
  EXPECT_EQ(evidence.holds[0].count, (stats::SignCount{3, 5}));
  EXPECT_EQ(evidence.fails[0].count, (stats::SignCount{1, 5})) << "0.625 - 0.525 is a tie";
  EXPECT_EQ(evidence.e.log_holds, stats::LogEValue({3, 5}));
  const Estimate estimate = EstimateOf(evidence, 0);
  EXPECT_NEAR(*estimate.mean, (0.5 + 0.25 + 0 + 0.1 + 0.5) / 5, 1e-12);
}

TEST(EvidenceTest, AnExactTieCountsForNeither) {
  const BoundSheet sheet = Bound(
      "  - {id: a, above: {metric: test_accuracy, a: pe=rope, b: pe=nope, by: 0.25}}\n", kThreePes);
  Outcomes outcomes;
  SetAccuracy(outcomes, kRope, {0.75, 0.75});
  SetAccuracy(outcomes, kNope, {0.5, 0.25});
  const Evidence evidence = Weigh(sheet, sheet.claims[0], outcomes, 0, 40);
  EXPECT_EQ(evidence.holds[0].count, (stats::SignCount{1, 2}));
  EXPECT_EQ(evidence.fails[0].count, (stats::SignCount{0, 2}));
}

TEST(EvidenceTest, StopsAtTheFirstSeedThatIsNotComplete) {
  const BoundSheet sheet = Bound(kAbove, kThreePes);
  Outcomes outcomes;
  SetAccuracy(outcomes, kRope, {1, 1, 1, 1, 1});
  SetAccuracy(outcomes, kNope, {0, 0, 0, 0, 0});
  outcomes.Set(kNope, 2, {});
  EXPECT_THAT(Weigh(sheet, sheet.claims[0], outcomes, 0, 40).seeds, SizeIs(2));
  EXPECT_THAT(Weigh(sheet, sheet.claims[0], outcomes, 3, 40).seeds, SizeIs(2)) << "from seed 3 on";
  EXPECT_THAT(Weigh(sheet, sheet.claims[0], outcomes, 0, 1).seeds, SizeIs(1));
}

TEST(EvidenceTest, AFailedSeedHasTheWorstValueAndTwoAreATie) {
  const BoundSheet sheet = Bound(kAbove, kThreePes);
  Outcomes outcomes;
  SetAccuracy(outcomes, kRope, {0.9, 0.9, 0.9});
  SetAccuracy(outcomes, kNope, {0.1, 0.1, 0.1});
  outcomes.Set(kRope, 0, {.state = Outcome::State::kFailed});
  outcomes.Set(kRope, 1, {.state = Outcome::State::kFailed});
  outcomes.Set(kNope, 1, {.state = Outcome::State::kFailed});
  const Evidence evidence = Weigh(sheet, sheet.claims[0], outcomes, 0, 40);
  EXPECT_THAT(evidence.seeds[0].values, ElementsAre(-0.1));
  EXPECT_THAT(evidence.seeds[1].values, ElementsAre(0));
  EXPECT_EQ(evidence.holds[0].count, (stats::SignCount{1, 3}));
}

TEST(EvidenceTest, AllSidesMustHoldAndOneMayFail) {
  const BoundSheet sheet =
      Bound("  - {id: c, above: {metric: test_accuracy, chain: [pe=rope, pe=alibi, pe=nope]}}\n",
            kThreePes);
  Outcomes outcomes;
  SetAccuracy(outcomes, kRope, std::vector<double>(10, 0.9));
  SetAccuracy(outcomes, kAlibi, std::vector<double>(10, 0.2));
  SetAccuracy(outcomes, kNope, std::vector<double>(10, 0.5));
  const Evidence evidence = Weigh(sheet, sheet.claims[0], outcomes, 0, 40);
  EXPECT_EQ(evidence.e.log_holds, stats::LogEValue({0, 10}));
  EXPECT_NEAR(std::exp(evidence.e.log_fails),
              (std::exp(stats::LogEValue({10, 10})) + std::exp(stats::LogEValue({0, 10}))) / 2,
              1e-9);
}

TEST(EvidenceTest, OnlySeedsThatHaveLearnedSomethingCount) {
  const BoundSheet sheet =
      Bound("  - {id: d, most: {metric: deposit, cell: pe=rope}}\n", kThreePes);
  Outcomes outcomes;
  // The shortcut of 15 places out of 8 x 8 cells is 23.4 %.
  SetAccuracy(outcomes, kRope, {0.9, 0.3, 0.34, 0.9});
  SetAccuracy(outcomes, kRope, {1, 1, 0}, "deposit");
  const Evidence evidence = Weigh(sheet, sheet.claims[0], outcomes, 0, 40);
  EXPECT_THAT(evidence.seeds, SizeIs(4));
  EXPECT_EQ(evidence.e.eligible, 3);
  EXPECT_EQ(evidence.holds[0].count, (stats::SignCount{1, 3}));
  EXPECT_EQ(evidence.fails[0].count, (stats::SignCount{1, 3})) << "the last one is undefined";
}

// Otherwise a seed would count as one without a deposit until its ablation is stored.
TEST(EvidenceTest, AClaimAboutAblationsWaitsForThem) {
  const BoundSheet sheet =
      Bound("  - {id: d, most: {metric: deposit, cell: pe=rope}}\n", kThreePes);
  Outcomes outcomes;
  SetAccuracy(outcomes, kRope, {0.9, 0.9, 0.9});
  SetAccuracy(outcomes, kRope, {1, 1, 1}, "deposit");
  Outcome trained = outcomes.Of(kRope, 1);
  trained.analyses.clear();
  outcomes.Set(kRope, 1, trained);
  EXPECT_THAT(Weigh(sheet, sheet.claims[0], outcomes, 0, 40).seeds, SizeIs(1));
}

TEST(EvidenceTest, SeedsOfPilotsAreNoReplicates) {
  const BoundSheet sheet = Bound(kAbove, kThreePes);
  Outcomes outcomes;
  for (const std::size_t cell : {kRope, kNope}) {
    for (std::int64_t seed = 998; seed < 1003; ++seed) {
      outcomes.Set(cell, seed, {.state = Outcome::State::kDone});
    }
  }
  EXPECT_THAT(Weigh(sheet, sheet.claims[0], outcomes, 998, 1038).seeds, SizeIs(2));
}

TEST(JudgementTest, TheClearClaimIsDecidedAndTheOtherIsToldWhatItNeeds) {
  const BoundSheet sheet = Bound(R"(
  - {id: a, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}}
  - {id: b, above: {metric: test_accuracy, a: pe=rope, b: pe=alibi}}
)",
                                 kThreePes);
  Outcomes outcomes;
  SetAccuracy(outcomes, kRope, std::vector<double>(9, 0.5));
  SetAccuracy(outcomes, kNope, std::vector<double>(9, 0.9));
  SetAccuracy(outcomes, kAlibi, {0.4, 0.6, 0.4, 0.6, 0.4, 0.6, 0.4, 0.6, 0.4});
  std::vector<Evidence> evidence;
  for (const BoundClaim& claim : sheet.claims) {
    evidence.push_back(Weigh(sheet, claim, outcomes, 0, 40));
  }
  const auto judgements = Judge(EValuesOf(evidence), 0.05);
  EXPECT_EQ(judgements[0].verdict, Verdict::kFails);
  EXPECT_NEAR(std::exp(judgements[0].log_threshold), 80, 1e-9);
  EXPECT_EQ(judgements[1].verdict, Verdict::kUndecided);
  EXPECT_NEAR(std::exp(judgements[1].log_threshold), 40, 1e-9);
}

TEST(JudgementTest, ManySeedsThatLearnedNothingAreNotEligible) {
  const BoundSheet sheet =
      Bound("  - {id: d, most: {metric: deposit, cell: pe=rope}}\n", kThreePes);
  Outcomes outcomes;
  SetAccuracy(outcomes, kRope, {0.9, 0.1, 0.1, 0.1});
  SetAccuracy(outcomes, kRope, {1, 0, 0, 0}, "deposit");
  const std::vector<Evidence> evidence = {Weigh(sheet, sheet.claims[0], outcomes, 0, 40)};
  EXPECT_EQ(Judge(EValuesOf(evidence), 0.05)[0].verdict, Verdict::kNotEligible);
}

TEST(JudgementTest, AFewEligibleSeedsThatAgreeDecideNothing) {
  const auto judged = [](std::int64_t eligible, double log_holds, double log_fails) {
    const EValues claim{
        .seeds = 40, .eligible = eligible, .log_holds = log_holds, .log_fails = log_fails};
    return Judge(std::vector<EValues>{claim}, 0.05)[0].verdict;
  };
  const double enough = std::log(100);
  EXPECT_EQ(judged(20, enough, 0), Verdict::kHolds);
  EXPECT_EQ(judged(19, enough, 0), Verdict::kNotEligible);
  EXPECT_EQ(judged(20, 0, enough), Verdict::kFails);
  EXPECT_EQ(judged(19, 0, enough), Verdict::kNotEligible);
}

}  // namespace
}  // namespace pelab::claims
