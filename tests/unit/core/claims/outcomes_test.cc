#include "core/claims/outcomes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

#include "core/claims/evidence.h"
#include "core/experiment/canonical_json.h"
#include "tests/unit/core/claims/claims_fixture.h"

namespace pelab::claims {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kThreeLayers[] = R"(
name: t
protocol: [clean, published]
pe: rope
task: {name: distance, length: 16, vocabulary: 40}
model: {d_model: 16, d_ff: 32, heads: 2, layers: 3, max_len: 16}
)";
constexpr char kClaims[] = R"(
  - {id: a, between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1}, each: protocol}
  - {id: b, between: {metric: 'epochs_to(0.9)', cell: pe=rope, low: 0, high: 1}, each: protocol}
  - {id: c, most: {metric: deposit, cell: pe=rope, layers: shallow}, each: protocol}
  - {id: d, most: {metric: deposit, cell: pe=rope, layers: [2]}, each: protocol}
  - {id: e, most: {metric: top_deeper, cell: pe=rope}, each: protocol}
  - {id: g, most: {metric: no_deposit, cell: pe=rope, layers: [0]}, each: protocol}
  - {id: f, between: {metric: max_drop, cell: pe=rope, low: 0, high: 1}, each: protocol}
)";

class OutcomesTest : public testing::Test {
 protected:
  OutcomesTest() { sheet_ = Bound(kClaims, kThreeLayers); }
  // A job of the configuration at `position`.
  v1::JobRow Job(std::int64_t id, std::size_t position, std::int64_t seed) {
    experiment::Job job = sheet_.configurations[position].job;
    job.seed = seed;
    job.values["task.data_seed"] = catalog::Value(seed);
    v1::JobRow row;
    row.set_job_id(id);
    row.set_seed(seed);
    row.set_state(v1::JOB_STATE_SUCCEEDED);
    row.set_test_accuracy(0.5 + 0.01 * static_cast<double>(id));
    row.set_spec_json(experiment::ToCanonicalJson(job));
    return row;
  }
  // A head ablation of a job, with a deposit in one layer; -1: no drop counts.
  void AddAblation(std::int64_t job, std::int64_t analysis, const std::string& hygiene,
                   const std::string& split, int layer, std::int64_t intact = 90) {
    v1::HeadAblationRow head;
    head.set_job_id(job);
    head.set_analysis_id(analysis);
    head.set_method("zero");
    head.set_hygiene(hygiene);
    head.set_split(split);
    head.set_target("head");
    head.set_total(100);
    head.set_intact_correct(intact);
    head.set_chance(0.125);
    rows_.heads.push_back(head);
    v1::DepositRow row;
    row.set_job_id(job);
    row.set_analysis_id(analysis);
    row.set_method("zero");
    if (layer >= 0) {
      row.set_max_drop(0.6);
      row.set_top_layer(layer);
    }
    rows_.deposits.push_back(row);
    row.set_layer(layer < 0 ? 0 : layer);
    row.set_deposit(layer >= 0);
    rows_.deposits.push_back(row);
  }
  Outcomes Made(std::vector<v1::JobRow> jobs) {
    rows_.jobs = results::JobList(std::move(jobs));
    return OutcomesOf(sheet_, rows_);
  }

  BoundSheet sheet_;
  StoredRows rows_;
};

TEST_F(OutcomesTest, JobsAreFoundByConfigurationAndSeed) {
  v1::JobRow running = Job(3, 0, 2);
  running.set_state(v1::JOB_STATE_RUNNING);
  const Outcomes outcomes = Made({Job(1, 0, 0), Job(2, 1, 7), running});
  EXPECT_EQ(outcomes.Of(0, 0).values.at("test_accuracy"), 0.51);
  EXPECT_EQ(outcomes.Of(1, 7).values.at("test_accuracy"), 0.52);
  EXPECT_EQ(outcomes.Of(0, 2).state, Outcome::State::kOpen);
  EXPECT_EQ(outcomes.Of(0, 7).state, Outcome::State::kOpen);
  EXPECT_EQ(outcomes.Of(1, 7).values.count("deposit(shallow)"), 0U);
  EXPECT_THAT(outcomes.Of(1, 7).analyses, IsEmpty());
}

TEST_F(OutcomesTest, TheLatestGenerationCounts) {
  v1::JobRow fresh = Job(5, 0, 0);
  fresh.set_generation(1);
  const Outcomes outcomes = Made({Job(1, 0, 0), fresh});
  EXPECT_EQ(outcomes.Of(0, 0).values.at("test_accuracy"), 0.55);
}

// A job that a machine could not run says nothing about its encoding: it is to be run again.
TEST_F(OutcomesTest, OnlyALossThatIsNotFiniteIsAnOutcome) {
  std::vector<v1::JobRow> jobs;
  for (const std::int64_t id : {1, 2, 3}) {
    jobs.push_back(Job(id, 0, id));
    jobs.back().set_state(v1::JOB_STATE_FAILED);
    jobs.back().clear_test_accuracy();
  }
  const auto add_attempt = [&](std::int64_t job, const char* kind) {
    v1::AttemptRow attempt;
    attempt.set_job_id(job);
    attempt.set_error_kind(kind);
    rows_.attempts.push_back(attempt);
  };
  add_attempt(1, "trainer_died");
  add_attempt(1, "non_finite_loss");
  add_attempt(2, "out_of_memory");
  add_attempt(3, "non_finite_loss");
  add_attempt(3, "io");
  const Outcomes outcomes = Made(std::move(jobs));
  EXPECT_EQ(outcomes.Of(0, 1).state, Outcome::State::kFailed);
  EXPECT_EQ(outcomes.Of(0, 2).state, Outcome::State::kOpen);
  EXPECT_EQ(outcomes.Of(0, 3).state, Outcome::State::kOpen);
}

TEST_F(OutcomesTest, EpochsToAnAccuracyThatWasNeverReached) {
  v1::EpochsToRow reached;
  reached.set_job_id(1);
  reached.set_epochs(4);
  rows_.epochs_to[0.9] = {reached};
  EXPECT_EQ(EpochsToOf(sheet_.sheet), std::vector<double>{0.9});
  const Outcomes outcomes = Made({Job(1, 0, 0), Job(2, 0, 1)});
  EXPECT_EQ(outcomes.Of(0, 0).values.at("epochs_to(0.9)"), 3);
  EXPECT_EQ(outcomes.Of(0, 1).values.at("epochs_to(0.9)"), std::numeric_limits<double>::infinity());
}

TEST_F(OutcomesTest, AnAccuracyOnASplitWaitsForItsAnalysis) {
  sheet_.sheet.claims.front().metric = "split_accuracy(train)";
  EXPECT_THAT(AnalysesOf(sheet_.sheet), ElementsAre("head_ablation", "split_accuracy"));
  v1::AnalysisRow row;
  row.set_job_id(1);
  row.set_analysis_id(7);
  row.set_name("split_accuracy");
  row.set_result_json(R"({"splits":[{"name":"train","total":8,"correct":6,"chance":0.1}]})");
  rows_.analyses["split_accuracy"] = {row};
  const Outcomes outcomes = Made({Job(1, 0, 0), Job(2, 0, 1)});
  EXPECT_EQ(outcomes.Of(0, 0).values.at("split_accuracy(train)"), 0.75);
  EXPECT_FALSE(outcomes.Of(0, 0).Lacks("split_accuracy(train)"));
  EXPECT_TRUE(outcomes.Of(0, 1).Lacks("split_accuracy(train)"));
  EXPECT_FALSE(outcomes.Of(0, 1).Lacks("test_accuracy"));
  EXPECT_TRUE(outcomes.Of(0, 0).Lacks("max_drop"));
}

TEST_F(OutcomesTest, TheAblationOfLayersThatTheProtocolAsksForCounts) {
  sheet_.sheet.claims.front().metric = "layer_drop(0)";
  const auto row = [](std::int64_t job, std::int64_t analysis, const std::string& parameters,
                      int right) {
    v1::AnalysisRow made;
    made.set_job_id(job);
    made.set_analysis_id(analysis);
    made.set_total(100);
    made.set_parameters_json(parameters);
    made.set_result_json(
        Concat(R"({"total":100,"intact_correct":80,"chance":0.1,"correct":[)", right, "]}"));
    return made;
  };
  const std::string test = R"({"method":"zero","data":"test"})";
  const std::string all = R"({"method":"zero","data":"all"})";
  rows_.analyses["layer_ablation"] = {row(1, 1, test, 20), row(1, 2, all, 30), row(2, 3, test, 40),
                                      row(2, 4, all, 50), row(3, 5, all, 60)};
  v1::JobRow waits = Job(3, 0, 1);
  waits.set_state(v1::JOB_STATE_RUNNING);
  waits.set_trained(true);
  const Outcomes outcomes = Made({Job(1, 0, 0), Job(2, 1, 0), waits, Job(4, 1, 1)});
  EXPECT_DOUBLE_EQ(outcomes.Of(0, 0).values.at("layer_drop(0)"), 0.6) << "clean";
  EXPECT_DOUBLE_EQ(outcomes.Of(1, 0).values.at("layer_drop(0)"), 0.3) << "published";
  EXPECT_TRUE(outcomes.Of(0, 1).Lacks("layer_drop(0)")) << "a better one may come";
  EXPECT_TRUE(outcomes.Of(1, 1).Lacks("layer_drop(0)"));
  EXPECT_EQ(WorstValue("layer_drop(0)"), std::nullopt);
}

TEST_F(OutcomesTest, AnAnalysisThatCannotBeMadeAnyMoreIsNotWaitedFor) {
  rows_.without_weights = {1};
  const Outcomes outcomes = Made({Job(1, 0, 0), Job(2, 0, 1)});
  EXPECT_FALSE(outcomes.Of(0, 0).Lacks("max_drop"));
  EXPECT_EQ(outcomes.Of(0, 0).values.count("max_drop"), 0u) << "it is undefined";
  EXPECT_TRUE(outcomes.Of(0, 1).Lacks("max_drop"));
}

TEST_F(OutcomesTest, EachProtocolHasItsOwnAblation) {
  for (const std::int64_t job : {1, 2}) {
    AddAblation(job, 10 * job, "clean", "test", 2);
    AddAblation(job, 10 * job + 1, "authors", "all", 0);
  }
  const Outcomes outcomes = Made({Job(1, 0, 0), Job(2, 1, 0)});
  EXPECT_EQ(outcomes.Of(0, 0).values.at("deposit(shallow)"), 0) << "layer 2 of 3 is not shallow";
  EXPECT_EQ(outcomes.Of(0, 0).values.at("deposit(2)"), 1);
  EXPECT_THAT(outcomes.Of(0, 0).analyses, ElementsAre("head_ablation"));
  EXPECT_EQ(outcomes.Of(0, 0).values.at("top_deeper"), 1);
  EXPECT_EQ(outcomes.Of(1, 0).values.at("deposit(shallow)"), 1);
  EXPECT_EQ(outcomes.Of(1, 0).values.at("deposit(2)"), 0);
  EXPECT_EQ(outcomes.Of(0, 0).values.at("no_deposit(0)"), 1);
  EXPECT_EQ(outcomes.Of(1, 0).values.at("no_deposit(0)"), 0);
  EXPECT_EQ(outcomes.Of(1, 0).values.at("top_deeper"), 0);
}

// The job was analyzed in another way, and is analyzed in that of its protocol now.
TEST_F(OutcomesTest, ABetterAblationThatIsBeingMadeIsWaitedFor) {
  for (const std::int64_t job : {1, 2, 3}) {
    AddAblation(job, 10 * job, job == 3 ? "clean" : "authors", "test", 0);
  }
  std::vector<v1::JobRow> jobs = {Job(1, 0, 0), Job(2, 0, 1), Job(3, 0, 2)};
  for (v1::JobRow& job : jobs) job.set_trained(true);
  jobs[1].set_state(v1::JOB_STATE_RUNNING);
  jobs[2].set_state(v1::JOB_STATE_RUNNING);
  const Outcomes outcomes = Made(std::move(jobs));
  EXPECT_FALSE(outcomes.Of(0, 0).Lacks("max_drop")) << "none is on its way";
  EXPECT_TRUE(outcomes.Of(0, 1).Lacks("max_drop"));
  EXPECT_FALSE(outcomes.Of(0, 2).Lacks("max_drop")) << "it has the right one";
}

TEST_F(OutcomesTest, NothingLostIsNoDepositAndNearChanceIsUndefined) {
  AddAblation(1, 10, "clean", "test", -1);
  AddAblation(2, 20, "clean", "test", 0, /*intact=*/14);
  const Outcomes outcomes = Made({Job(1, 0, 0), Job(2, 0, 1)});
  EXPECT_EQ(outcomes.Of(0, 0).values.at("deposit(shallow)"), 0);
  EXPECT_EQ(outcomes.Of(0, 0).values.at("no_deposit(0)"), 1);
  EXPECT_EQ(outcomes.Of(0, 1).values.count("no_deposit(0)"), 0U);
  EXPECT_EQ(outcomes.Of(0, 0).values.at("max_drop"), 0);
  EXPECT_EQ(outcomes.Of(0, 0).values.count("top_deeper"), 0U);
  EXPECT_EQ(outcomes.Of(0, 1).values.count("deposit(shallow)"), 0U);
  EXPECT_EQ(outcomes.Of(0, 1).values.count("max_drop"), 0U);
}

// The claim itself is about accuracies alone.
TEST_F(OutcomesTest, SeedsCanBeEligibleByWhatTheirHeadsAreWorth) {
  sheet_ = Bound(R"(
  - id: a
    between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1}
    where: protocol=clean
    eligible: {metric: max_drop, above: 0.2, by: 0}
)",
                 kThreeLayers);
  AddAblation(1, 10, "clean", "test", 0);
  AddAblation(2, 20, "clean", "test", -1);
  const Outcomes outcomes = Made({Job(1, 0, 0), Job(2, 0, 1)});
  const Evidence evidence = Weigh(sheet_, sheet_.claims[0], outcomes, 0, 40);
  ASSERT_EQ(evidence.seeds.size(), 2U);
  EXPECT_TRUE(evidence.seeds[0].eligible);
  EXPECT_FALSE(evidence.seeds[1].eligible) << "nothing was lost";
}

TEST(WorstValueTest, IsTheWorstThatTheMetricCanBe) {
  EXPECT_EQ(WorstValue("test_accuracy"), 0);
  EXPECT_EQ(WorstValue("generalisation_gap"), 1);
  EXPECT_EQ(WorstValue("epochs_to(0.9)"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(WorstValue("deposit(shallow)"), std::nullopt);
  EXPECT_EQ(WorstValue("gini"), std::nullopt);
}

TEST_F(OutcomesTest, SlotTimeIsThatOfTheTrainingOrOfAttemptsThatDiverged) {
  v1::JobRow trained = Job(1, 0, 0), failed = Job(2, 0, 1), queued = Job(3, 0, 2);
  v1::JobRow again = Job(4, 0, 3);  // it ran out of memory, so it has no outcome
  again.set_state(v1::JOB_STATE_FAILED);
  trained.set_trained(true);
  trained.set_wall_seconds(12.5);
  failed.set_state(v1::JOB_STATE_FAILED);
  queued.set_state(v1::JOB_STATE_QUEUED);
  for (const std::int64_t job : {1, 4, 2, 2, 2}) {
    v1::AttemptRow& attempt = rows_.attempts.emplace_back();
    attempt.set_job_id(job);
    attempt.set_started_at_ms(1000);
    attempt.set_ended_at_ms(3500);
    attempt.set_error_kind(job == 4 ? "out_of_memory" : "non_finite_loss");
  }
  rows_.attempts.back().set_ended_at_ms(900);  // the clock was set back
  const SlotTimes times(rows_);
  EXPECT_EQ(times.Of(trained), 12.5);
  EXPECT_EQ(times.Of(failed), 5);
  EXPECT_EQ(times.Of(queued), std::nullopt);
  EXPECT_EQ(times.Of(again), std::nullopt);
  const Outcomes outcomes = Made({trained, failed, queued});
  EXPECT_EQ(outcomes.Of(0, 1).state, Outcome::State::kFailed);
  EXPECT_EQ(outcomes.Of(0, 1).slot_seconds, 5);
  // Each claim about the cell pays for its two seeds. The third one is not complete.
  const Evidence evidence = Weigh(sheet_, sheet_.claims.front(), outcomes, 0, 3);
  EXPECT_EQ(evidence.e.seeds, 2);
  EXPECT_EQ(evidence.slot_seconds, 17.5);
}

}  // namespace
}  // namespace pelab::claims
