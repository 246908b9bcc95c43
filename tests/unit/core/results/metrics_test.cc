#include "core/results/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/results/cells.h"
#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::results {
namespace {

using ::testing::HasSubstr;

v1::DepositRow Deposit(std::int64_t job, const std::string& method, double gini) {
  v1::DepositRow row;
  row.set_job_id(job);
  row.set_method(method);
  row.set_hygiene("clean");
  row.set_split("test");
  row.set_target("head");
  row.set_gini(gini);
  return row;
}

TEST(MetricsTest, WhatIsKnownAndWhatIsNot) {
  EXPECT_EQ(ParseMetric("gini")->source, Metric::Source::kDeposit);
  const auto epochs = ParseMetric("epochs_to(0.9)");
  ASSERT_TRUE(epochs.ok());
  EXPECT_EQ(epochs->accuracy, 0.9);
  EXPECT_EQ(epochs->name, "epochs_to(0.9)");
  for (const char* bad :
       {"epochs_to", "epochs_to()", "epochs_to(1.5)", "epochs_to(nan)", "ginni"}) {
    const auto metric = ParseMetric(bad);
    EXPECT_EQ(metric.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(metric.status().message()), HasSubstr("epochs_to(x)")) << bad;
  }
}

TEST(MetricsTest, TheGapNeedsBothAccuracies) {
  v1::JobRow job = MakeJob(1, "rope", 0, v1::JOB_STATE_SUCCEEDED, 900);
  EXPECT_FALSE(MetricOf(job, *ParseMetric("generalisation_gap")).has_value());
  job.set_train_accuracy(0.8);  // with dropout: it says nothing about a gap
  EXPECT_FALSE(MetricOf(job, *ParseMetric("generalisation_gap")).has_value());
  job.set_train_eval_accuracy(0.95);
  EXPECT_NEAR(*MetricOf(job, *ParseMetric("generalisation_gap")), 0.05, 1e-12);
}

TEST(MetricsTest, IndicesOfOneKindOfAblation) {
  EXPECT_TRUE(IsShare(*ParseMetric("gini")) && IsShare(*ParseMetric("top_share")));
  EXPECT_TRUE(IsShare(*ParseMetric("best_test_accuracy")));
  EXPECT_FALSE(IsShare(*ParseMetric("top_ratio")) || IsShare(*ParseMetric("wall_seconds")));
  const Metric gini = *ParseMetric("gini");
  v1::DepositRow of_layer = Deposit(1, "zero", 0.9);
  of_layer.set_layer(0);
  const auto values =
      DepositValues({Deposit(1, "zero", 0.5), of_layer, Deposit(2, "zero", 0.25)}, gini);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->size(), 2u);
  EXPECT_EQ(values->at(1), 0.5);
  const auto mixed = DepositValues({Deposit(1, "zero", 0.5), Deposit(2, "mean", 0.25)}, gini);
  EXPECT_THAT(std::string(mixed.status().message()),
              HasSubstr("(mean clean test head; zero clean test head); choose one by method, "
                        "hygiene, data or target"));
}

v1::AnalysisRow Splits(std::int64_t job, std::int64_t analysis, const std::string& splits) {
  v1::AnalysisRow row;
  row.set_job_id(job);
  row.set_analysis_id(analysis);
  row.set_name("split_accuracy");
  row.set_result_json(R"({"splits":[)" + splits + "]}");
  return row;
}

TEST(MetricsTest, AccuraciesOfSplits) {
  const Metric of_long = *ParseMetric("split_accuracy(long)");
  EXPECT_EQ(of_long.source, Metric::Source::kAnalysis);
  EXPECT_EQ(of_long.split, "long");
  EXPECT_TRUE(IsShare(of_long));
  for (const char* bad : {"split_accuracy", "split_accuracy()", "split_accuracy(Long)",
                          "split_accuracy(long", "split_accuracy(a b)"}) {
    EXPECT_THAT(std::string(ParseMetric(bad).status().message()), HasSubstr("split_accuracy(name)"))
        << bad;
  }
  const std::string train = R"({"name":"train","total":10,"correct":9,"chance":0.1},)";
  const auto values =
      SplitValues({Splits(1, 5, train + R"({"name":"long","total":20,"correct":5,"chance":0.1})"),
                   Splits(1, 6, train + R"({"name":"long","total":4,"correct":4,"chance":0.1})"),
                   Splits(1, 7, train + R"({"name":"long","total":20,"correct":6,"chance":0.1})"),
                   Splits(2, 8, R"({"name":"train","total":10,"correct":1,"chance":0.1})"),
                   Splits(3, 9, R"({"name":"long","total":10,"correct":11,"chance":0.1})"),
                   Splits(4, 10, R"({"name":"long","total":0,"correct":0,"chance":0.1})"),
                   Splits(5, 11, R"({"name":7})")},
                  of_long);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, (MetricValues{{1, 0.3}})) << "most examples, then the newest";
  EXPECT_TRUE(SplitValues({}, of_long)->empty());
  EXPECT_THAT(
      std::string(
          SplitValues(
              {Splits(1, 5, train + R"({"name":"test","total":2,"correct":1,"chance":0.1})")},
              of_long)
              .status()
              .message()),
      HasSubstr("have no such split; their splits: train, test"));
}

TEST(MetricsTest, OfLayersAndOfHeadsThatAreGone) {
  const Metric drop = *ParseMetric("layer_drop(3)");
  EXPECT_EQ(drop.analysis, "layer_ablation");
  EXPECT_EQ(drop.number, 3);
  EXPECT_FALSE(IsShare(drop)) << "it can be negative";
  EXPECT_EQ(ParseMetric("greedy_accuracy(12)")->number, 12);
  EXPECT_TRUE(IsShare(*ParseMetric("greedy_accuracy(1)")));
  for (const char* bad :
       {"layer_drop", "layer_drop()", "layer_drop(-1)", "layer_drop(01)", "layer_drop(1.5)",
        "layer_drop( 1)", "greedy_accuracy(0)", "greedy_accuracy(99999999999999999999)"}) {
    EXPECT_THAT(std::string(ParseMetric(bad).status().message()), HasSubstr("layer_drop(layer)"))
        << bad;
  }
  EXPECT_THAT(std::string(ParseMetric("gredy_accuracy(4)").status().message()),
              HasSubstr("did you mean greedy_accuracy(heads)?"));
}

TEST(MetricsTest, CellsOfValuesThatAreNotInTheRows) {
  const MetricValues values = {{1, 12.0}, {2, 14.0}};
  const JobList jobs({MakeJob(1, "rope", 0, v1::JOB_STATE_SUCCEEDED, 1),
                      MakeJob(2, "rope", 1, v1::JOB_STATE_SUCCEEDED, 1),
                      MakeJob(3, "rope", 2, v1::JOB_STATE_SUCCEEDED, 1),
                      MakeJob(4, "rope", 3, v1::JOB_STATE_FAILED, 1)});
  const auto table =
      BuildCells(jobs, {.metric = *ParseMetric("epochs_to(0.9)"), .values = &values});
  ASSERT_TRUE(table.ok());
  const stats::SeedSummary& summary = table->cells[0].summary;
  EXPECT_FALSE(summary.mean.has_value()) << "one seed was never there";
  EXPECT_EQ(summary.median, 14);
  EXPECT_EQ(summary.n, 2);
  EXPECT_EQ(summary.missing, 0);
  EXPECT_EQ(summary.censored, 1);
  EXPECT_EQ(summary.failed, 1);
  const render::Json json = ToJson(*table, table->cells[0]);
  EXPECT_EQ(json["not_reached"], 1);
  EXPECT_EQ(json["median"], 14);
  EXPECT_TRUE(json["mean"].is_null() && json["median_above"].is_null());
}

TEST(MetricsTest, EpochsCountFromZeroAsThoseOfCurves) {
  v1::EpochsToRow row;
  row.set_job_id(7);
  row.set_epochs(1);  // the protocol message counts from 1
  EXPECT_EQ(EpochsValues({row}).at(7), 0);
}

TEST(MetricsTest, AnIntervalOfAnAccuracyIsWithinZeroAndOne) {
  const JobList jobs({MakeJob(1, "rope", 0, v1::JOB_STATE_SUCCEEDED, 900),
                      MakeJob(2, "rope", 1, v1::JOB_STATE_SUCCEEDED, 980),
                      MakeJob(3, "nope", 0, v1::JOB_STATE_SUCCEEDED, 20),
                      MakeJob(4, "nope", 1, v1::JOB_STATE_SUCCEEDED, 100)});
  const auto table = BuildCells(jobs, "test_accuracy", {});
  ASSERT_TRUE(table.ok());
  // t(0.975, 1) * 0.0565685 / sqrt(2) = 0.508248
  const stats::SeedSummary& high = table->cells[0].summary;
  EXPECT_NEAR(*high.half_width, 0.508248, 1e-6);
  EXPECT_NEAR(*high.low, 0.94 - 0.508248, 1e-6);
  EXPECT_EQ(high.high, 1);
  EXPECT_EQ(table->cells[1].summary.low, 0);
}

TEST(MetricsTest, DivergedJobsAreCounted) {
  v1::JobRow diverged = MakeJob(1, "rope", 0, v1::JOB_STATE_SUCCEEDED, 20);
  diverged.set_diverged(true);
  const auto table =
      BuildCells(JobList({diverged, MakeJob(2, "rope", 1, v1::JOB_STATE_SUCCEEDED, 900)}),
                 "test_accuracy", {});
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(ToJson(*table, table->cells[0])["diverged"], 1);
}

}  // namespace
}  // namespace pelab::results
