#include "core/results/ablation_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::results {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kZeroTest[] = R"({"method":"zero","data":"test","max_examples":0})";

// 80 of 100 examples are right with all heads, of 8 classes.
v1::AnalysisRow Row(std::int64_t job, std::int64_t analysis, const std::string& result,
                    const std::string& parameters = kZeroTest, std::int64_t total = 100) {
  v1::AnalysisRow row;
  row.set_job_id(job);
  row.set_analysis_id(analysis);
  row.set_parameters_json(parameters);
  row.set_total(total);
  row.set_result_json(R"({"total":100,"intact_correct":80,"chance":0.125,)" + result + "}");
  return row;
}
const char* const kLayers = R"("correct":[20,83])";
const char* const kGreedy = R"("greedy":{"heads":[[0,1],[1,0]],"correct":[79,40]})";

double Score(const v1::AnalysisRow& row, const std::string& metric) {
  return AblationScoreOf(row, *ParseMetric(metric)).value_or(-9);
}

TEST(AblationScoresTest, OfALayerAndOfHeadsThatAreGone) {
  EXPECT_DOUBLE_EQ(Score(Row(1, 1, kLayers), "layer_drop(0)"), 0.6);
  EXPECT_DOUBLE_EQ(Score(Row(1, 1, kLayers), "layer_drop(1)"), -0.03) << "it is better without";
  EXPECT_EQ(Score(Row(1, 1, kLayers), "layer_drop(2)"), -9);
  EXPECT_DOUBLE_EQ(Score(Row(1, 1, kGreedy), "greedy_accuracy(1)"), 0.79);
  EXPECT_DOUBLE_EQ(Score(Row(1, 1, kGreedy), "greedy_accuracy(2)"), 0.4);
  EXPECT_EQ(Score(Row(1, 1, kGreedy), "greedy_accuracy(3)"), -9);
}

TEST(AblationScoresTest, AModelNearChanceHasNone) {
  v1::AnalysisRow row;
  row.set_result_json(R"({"total":100,"intact_correct":20,"chance":0.125,"correct":[9]})");
  EXPECT_EQ(Score(row, "layer_drop(0)"), -9);
}

TEST(AblationScoresTest, WhatAResultLacksIsNoScore) {
  for (const char* broken : {"", "[]", "{", R"({"total":0,"intact_correct":0,"chance":0.1})",
                             R"({"total":9,"intact_correct":9,"chance":"x","correct":[1]})",
                             R"({"total":9,"intact_correct":9,"chance":0.1,"correct":["1"]})",
                             R"({"total":9,"intact_correct":9,"chance":0.1,"correct":[-1]})",
                             R"({"total":9,"intact_correct":10,"chance":0.1,"correct":[1]})",
                             R"({"total":9,"intact_correct":9,"chance":0.1,"correct":{"0":1}})"}) {
    v1::AnalysisRow row;
    row.set_result_json(broken);
    EXPECT_EQ(Score(row, "layer_drop(0)"), -9) << broken;
    EXPECT_EQ(Score(row, "greedy_accuracy(1)"), -9) << broken;
  }
}

TEST(AblationScoresTest, OfEachJobTheAnalysisOfMostExamplesCountsThenTheNewest) {
  const auto values = AblationScores(
      {Row(1, 1, R"("correct":[10])"), Row(1, 2, R"("correct":[70])"),
       Row(1, 3, R"("correct":[60])", kZeroTest, 50), Row(2, 4, R"("correct":[80])")},
      *ParseMetric("layer_drop(0)"));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(*values, UnorderedElementsAre(Pair(1, 0.1), Pair(2, 0)));
  v1::AnalysisRow near_chance = Row(1, 9, "");
  near_chance.set_result_json(R"({"total":100,"intact_correct":13,"chance":0.125,"correct":[9]})");
  EXPECT_THAT(*AblationScores({Row(1, 1, kLayers), near_chance}, *ParseMetric("layer_drop(0)")),
              testing::IsEmpty());
}

TEST(AblationScoresTest, OneKindIsChosen) {
  const Metric metric = *ParseMetric("layer_drop(0)");
  std::vector<v1::AnalysisRow> rows = {
      Row(1, 1, kLayers), Row(1, 2, R"("correct":[30])", R"({"method":"mean","data":"all"})")};
  EXPECT_THAT(std::string(AblationScores(rows, metric).status().message()),
              HasSubstr("of several kinds (mean all; zero test); choose one by method or data"));
  EXPECT_THAT(std::string(Choose({.split = "train"}, rows).message()),
              HasSubstr("data: no stored ablation has \"train\"; stored: all, test"));
  ASSERT_TRUE(Choose({.method = "mean"}, rows).ok());
  EXPECT_THAT(*AblationScores(rows, metric), UnorderedElementsAre(Pair(1, 0.5)));
}

}  // namespace
}  // namespace pelab::results
