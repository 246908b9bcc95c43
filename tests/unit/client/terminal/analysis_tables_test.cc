#include "client/terminal/analysis_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/unit/core/results/cells_fixture.h"
#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::AnalysisRow Row(std::int64_t job, const std::string& name, const std::string& result) {
  v1::AnalysisRow row;
  row.set_job_id(job);
  row.set_analysis_id(job);
  row.set_name(name);
  row.set_version(1);
  row.set_parameters_json(R"({"data":"test","max_examples":0,"method":"zero"})");
  row.set_total(1000);
  row.set_intact_correct(800);
  row.set_seconds(1.5);
  row.set_result_json(result);
  return row;
}

// Layer 0: 500 lost. Layer 1: a net loss of 5 of 1000, within its error.
constexpr char kLayers[] =
    R"({"total":1000,"intact_correct":800,"intact_nll":0.5,"chance":0.1,"correct":[300,795],)"
    R"("lost":[500,15],"gained":[0,10],"nll":[2.5,0.501],"nll_standard_error":[0.1,0.01]})";
constexpr char kCurves[] = R"({"total":1000,"intact_correct":800,"chance":0.1,)"
                           R"("greedy":{"heads":[[1,3],[0,2]],"correct":[300,100]},)"
                           R"("random":[{"heads":[[0,0],[0,1]],"correct":[790,600]},)"
                           R"({"heads":[[1,0],[1,3]],"correct":[810,200]}]})";

TEST(AnalysisTableTest, Golden) {
  const results::CellTable cells =
      Cells({MakeJob(1, "rope", 0, kDone, 1), MakeJob(2, "rope", 1, kDone, 1)});
  EXPECT_EQ(AnalysisTableText(cells,
                              {Row(1, "layer_ablation", kLayers), Row(2, "layer_ablation", kLayers),
                               Row(2, "cumulative_ablation", kCurves)},
                              {}),
            "cumulative_ablation: zero ablation, test data\n"
            "pe    task      examples  intact  seeds\n"
            "rope  distance      1000  0.8000    1/2\n"
            "\n"
            "layer_ablation: zero ablation, test data\n"
            "pe    task      examples  intact  seeds\n"
            "rope  distance      1000  0.8000    2/2\n");
  EXPECT_EQ(AnalysisTableText(cells, {}, {}), "");
  v1::AnalysisRow fewer = Row(2, "layer_ablation", kLayers);
  fewer.set_total(980);
  EXPECT_THAT(AnalysisTableText(cells, {Row(1, "layer_ablation", kLayers), fewer}, {}),
              HasSubstr("980-1000"));
}

TEST(LayerAblationTest, OneSeedHasTheErrorsOfItsExamples) {
  const std::string text = LayerAblationText(Cells({MakeJob(1, "rope", 0, kDone, 1)}),
                                             {Row(1, "layer_ablation", kLayers)}, {});
  // Standard error of 500 in 1000: sqrt(0.25 / 1000) = 1.58 points, times 1.96; divided by 0.7
  // above chance.
  EXPECT_THAT(text, HasSubstr("rope distance: without all heads of a layer (zero ablation, test "
                              "data)\n"));
  EXPECT_THAT(text, HasSubstr("50.0±3.1           71.4±4.4       2.000±0.196\n"));
  // Layer 1 is marked; its standard error is sqrt((0.025 - 0.000025) / 1000) = 0.5 points.
  EXPECT_THAT(text, HasSubstr("0.5±1.0?           0.7±1.4?      0.001±0.020?\n"));
}

TEST(LayerAblationTest, SeveralSeedsHaveTheIntervalOfTheirMean) {
  std::string other = kLayers;
  other.replace(other.find("500,15"), 6, "600,15");
  const std::string text = LayerAblationText(
      Cells({MakeJob(1, "rope", 0, kDone, 1), MakeJob(2, "rope", 1, kDone, 1)}),
      {Row(1, "layer_ablation", kLayers), Row(2, "layer_ablation", other)}, {.width = 120});
  EXPECT_THAT(text, HasSubstr("mean of 2 seeds"));
  EXPECT_THAT(text, HasSubstr("55.0±63.5")) << "t(0.975, 1) * 0.0707 / sqrt(2)";
}

TEST(SplitAccuracyTest, OneLineForEachGroupAndSplit) {
  const auto row = [](std::int64_t job, const std::string& correct) {
    v1::AnalysisRow made = Row(job, "split_accuracy",
                               R"({"total":50,"splits":[{"name":"train","total":100,)"
                               R"("correct":90,"nll":0.5,"chance":0.25},{"name":"long",)"
                               R"("total":50,"nll":2,"chance":0.125,"correct":)" +
                                   correct + "}]}");
    made.set_parameters_json(R"({"max_examples":0})");
    return made;
  };
  const results::CellTable cells =
      Cells({MakeJob(1, "rope", 0, kDone, 1), MakeJob(2, "rope", 1, kDone, 1),
             MakeJob(3, "nope", 0, kDone, 1)});
  // t(0.975, 1) * 0.0141421 / sqrt(2) = 0.1271.
  EXPECT_EQ(SplitAccuracyText(cells, {row(1, "20"), row(2, "21"), row(3, "50")}, {}),
            "split_accuracy\n"
            "pe    task      split  accuracy  95% interval  chance  seeds\n"
            "rope  distance  train    0.9000       ±0.0000  0.2500    2/2\n"
            "rope  distance  long     0.4100       ±0.1271  0.1250    2/2\n"
            "nope  distance  train    0.9000             -  0.2500    1/1\n"
            "nope  distance  long     1.0000             -  0.1250    1/1\n");
  const std::string unread =
      SplitAccuracyText(cells, {row(1, "20"), Row(2, "split_accuracy", "{}")}, {});
  EXPECT_THAT(unread, HasSubstr("rope  distance  long     0.4000"));
  EXPECT_THAT(unread, HasSubstr("1/2"));
  EXPECT_EQ(SplitAccuracyText(cells, {}, {}), "");
}

TEST(LayerAblationTest, AResultThatCannotBeReadIsSaid) {
  const std::string text =
      LayerAblationText(Cells({MakeJob(1, "rope", 0, kDone, 1)}),
                        {Row(1, "layer_ablation", R"({"total":10,"note":"\u001b[31m"})")}, {});
  EXPECT_THAT(text, HasSubstr("result cannot be read"));
  EXPECT_THAT(text, HasSubstr("intact_correct"));
}

TEST(CumulativeAblationTest, GreedyAgainstRandom) {
  const std::string text = CumulativeAblationText(Cells({MakeJob(1, "rope", 0, kDone, 1)}),
                                                  {Row(1, "cumulative_ablation", kCurves)},
                                                  {.color = false, .width = 90});
  EXPECT_THAT(text, HasSubstr("      0                  0.8000  0.8000  0.8000   0.8000\n"));
  EXPECT_THAT(text, HasSubstr("      1  layer 1 head 3  0.3000  0.8000  0.7900   0.8100\n"));
  EXPECT_THAT(text, HasSubstr("      2  layer 0 head 2  0.1000  0.4000  0.2000   0.6000\n"));
  EXPECT_THAT(text, HasSubstr("heads removed"));
}

TEST(CumulativeAblationTest, OverSeedsTheOrderIsNotNamed) {
  const std::string text = CumulativeAblationText(
      Cells({MakeJob(1, "rope", 0, kDone, 1), MakeJob(2, "rope", 1, kDone, 1)}),
      {Row(1, "cumulative_ablation", kCurves), Row(2, "cumulative_ablation", kCurves)}, {});
  EXPECT_THAT(text, HasSubstr("0.3000±0.0000"));
  EXPECT_THAT(text, Not(HasSubstr("layer 1 head 3")));
}

TEST(CumulativeAblationTest, WithoutRandomOrders) {
  constexpr char kGreedy[] =
      R"({"total":10,"intact_correct":8,"chance":0.1,"greedy":{"heads":[[0,0]],"correct":[3]},)"
      R"("random":[]})";
  const std::string text = CumulativeAblationText(Cells({MakeJob(1, "rope", 0, kDone, 1)}),
                                                  {Row(1, "cumulative_ablation", kGreedy)}, {});
  EXPECT_THAT(text, HasSubstr("layer 0 head 0  0.3000       -       -        -\n"));
}

}  // namespace
}  // namespace pelab::client
