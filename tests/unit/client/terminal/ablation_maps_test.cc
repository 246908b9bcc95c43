#include "client/terminal/ablation_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/unit/core/results/cells_fixture.h"
#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::client {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kZero[] =
    R"({"data":"test","hygiene":"clean","max_examples":0,"method":"zero","target":"head"})";
constexpr char kMean[] =
    R"({"data":"test","hygiene":"clean","max_examples":0,"method":"mean","target":"authors"})";

// Analyses 1 and 2 are of one kind, 3 of another.
results::Variants ZeroAndMean() {
  return {{1, {"head_ablation", 2, kZero}},
          {2, {"head_ablation", 2, kZero}},
          {3, {"head_ablation", 2, kMean}}};
}

v1::HeadAblationRow Head(std::int64_t job, int layer, int head, double drop, double error = 0.01) {
  v1::HeadAblationRow row;
  row.set_job_id(job);
  row.set_analysis_id(job);
  row.set_method("zero");
  row.set_hygiene("clean");
  row.set_split("test");
  row.set_target("head");
  row.set_layer(layer);
  row.set_head(head);
  row.set_total(1000);
  row.set_intact_correct(800);
  row.set_chance(0.1);
  row.set_accuracy_drop(drop);
  row.set_drop_standard_error(error);
  row.set_normalised_drop(drop / 0.7);
  row.set_nll_drop(2 * drop);
  row.set_nll_drop_standard_error(error);
  return row;
}

std::vector<v1::JobRow> TwoSeeds() {
  return {MakeJob(1, "rope", 0, v1::JOB_STATE_SUCCEEDED, 1),
          MakeJob(2, "rope", 1, v1::JOB_STATE_SUCCEEDED, 1)};
}

TEST(DropTest, CountsFromThreeStandardErrorsOn) {
  EXPECT_FALSE(
      results::DropOf(Head(1, 0, 0, 0.03), results::AblationMetric::kAccuracyDrop)->counts);
  const auto drop = results::DropOf(Head(1, 0, 0, 0.031), results::AblationMetric::kAccuracyDrop);
  EXPECT_TRUE(drop->counts);
  EXPECT_NEAR(*drop->half_width(), 0.0196, 1e-4);
  EXPECT_TRUE(results::DropOf(Head(1, 0, 0, 0.016), results::AblationMetric::kNllDrop)->counts)
      << "0.032 nats";
  const auto normalized =
      results::DropOf(Head(1, 0, 0, 0.35), results::AblationMetric::kNormalizedDrop);
  EXPECT_DOUBLE_EQ(normalized->value, 0.5);
  EXPECT_DOUBLE_EQ(*normalized->standard_error, 0.01 / 0.7);
}

TEST(DropTest, WhatIsNotStoredIsNotThere) {
  v1::HeadAblationRow missing;
  EXPECT_FALSE(results::DropOf(missing, results::AblationMetric::kAccuracyDrop).has_value());
  v1::HeadAblationRow old = Head(1, 0, 0, 0.001);  // version 1: no errors, no losses
  old.clear_drop_standard_error();
  old.clear_nll_drop();
  EXPECT_TRUE(results::DropOf(old, results::AblationMetric::kAccuracyDrop)->counts)
      << "nothing is known against it";
  EXPECT_FALSE(
      results::DropOf(old, results::AblationMetric::kAccuracyDrop)->half_width().has_value());
  EXPECT_FALSE(results::DropOf(old, results::AblationMetric::kNllDrop).has_value());
}

TEST(DropTest, NothingIsNormalizedAtTheFloor) {
  v1::HeadAblationRow row = Head(1, 0, 0, 0.1);
  row.set_intact_correct(110);  // 0.11 against 0.1
  EXPECT_FALSE(results::DropOf(row, results::AblationMetric::kNormalizedDrop).has_value());
}

TEST(MeanAblationsTest, TheMeanOfWhatIsStoredWithAMarkWhereItMayBeChance) {
  const auto maps = AblationMaps(Cells(TwoSeeds()),
                                 {Head(1, 0, 0, 0.1), Head(1, 0, 1, 0.3), Head(1, 0, 2, 0.02),
                                  Head(2, 0, 0, 0.02), Head(2, 0, 1, 0.5), Head(2, 0, 2, -0.2)},
                                 ZeroAndMean(), results::AblationMetric::kAccuracyDrop,
                                 results::HeadOrder::kIndex);
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0].map.layers, 1);
  EXPECT_EQ(maps[0].map.heads, 3);
  EXPECT_THAT(maps[0].map.values, ElementsAre(DoubleEq(0.06), DoubleEq(0.4), DoubleEq(-0.09)));
  EXPECT_THAT(maps[0].map.muted, ElementsAre(false, false, false))
      << "of the last, what seed 1 gained is no chance";
  EXPECT_DOUBLE_EQ(maps[0].strongest, 0.4);
  EXPECT_THAT(maps[0].map.title,
              HasSubstr("rope distance: accuracy lost without each head, in points (zero ablation, "
                        "test data, clean hygiene, mean of 2 seeds)"));
  EXPECT_TRUE(AblationMaps(Cells(TwoSeeds()), {}, ZeroAndMean(), results::AblationMetric::kNllDrop)
                  .empty());
}

TEST(MeanAblationsTest, KindsAreNotMixed) {
  v1::HeadAblationRow other = Head(1, 0, 0, 0.7);
  other.set_analysis_id(3);
  const auto maps = AblationMaps(Cells(TwoSeeds()), {Head(1, 0, 0, 0.1), Head(2, 0, 0, 0.3), other},
                                 ZeroAndMean(), results::AblationMetric::kAccuracyDrop);
  ASSERT_EQ(maps.size(), 2u);
  EXPECT_THAT(maps[0].map.title, HasSubstr("(mean ablation, test data, clean hygiene, target "
                                           "authors, mean of 1 of 2 seeds)"));
  EXPECT_DOUBLE_EQ(maps[0].map.values[0], 0.7);
  EXPECT_DOUBLE_EQ(maps[1].map.values[0], 0.2);
}

TEST(AblationMapTextTest, SaysWhatItsSignsMean) {
  v1::HeadAblationRow missing = Head(1, 0, 1, 0);
  missing.clear_accuracy_drop();
  const auto maps = AblationMaps(Cells({MakeJob(1, "rope", 0, v1::JOB_STATE_SUCCEEDED, 1)}),
                                 {Head(1, 0, 0, 0.25), missing, Head(1, 0, 2, 0.01)}, ZeroAndMean(),
                                 results::AblationMetric::kAccuracyDrop);
  EXPECT_EQ(AblationMapText(maps.at(0), {.width = 120}),
            "rope distance: accuracy lost without each head, in points (zero ablation, test data, "
            "clean hygiene)\n"
            "head          0      1      2\n"
            "layer 0    25.0      -    1.0?\n");
  EXPECT_EQ(AblationNotes(maps, {.width = 120}),
            "Values are the stored drops; for several seeds, their mean. ?: within 3 standard "
            "errors of the paired change in every\n"
            "seed, so it may be chance. -: no such entry.\n");
  const auto plain =
      AblationMaps(Cells({MakeJob(1, "rope", 0, v1::JOB_STATE_SUCCEEDED, 1)}),
                   {Head(1, 0, 0, 0.25)}, ZeroAndMean(), results::AblationMetric::kNllDrop);
  EXPECT_THAT(AblationMapText(plain.at(0), {}), HasSubstr("layer 0   0.500\n"));
  EXPECT_THAT(AblationNotes(plain, {}), Not(HasSubstr("no such entry")));
  EXPECT_THAT(AblationNotes(plain, {.width = 120}), HasSubstr("?: within 3 standard errors"));
}

// Seed 0 has its largest drop in head 0, seed 1 in head 1. Averaged by head number they give two
// medium heads, which neither seed has.
std::vector<v1::HeadAblationRow> Exchanged() {
  return {Head(1, 0, 0, 0.6),  Head(1, 0, 1, 0.02), Head(1, 1, 0, 0.1), Head(1, 1, 1, 0.3),
          Head(2, 0, 0, 0.01), Head(2, 0, 1, 0.4),  Head(2, 1, 0, 0.0), Head(2, 1, 1, 0.2)};
}

TEST(HeadOrderTest, HeadsThatAnEncodingTreatsAlikeAreAveragedByRank) {
  const auto maps = AblationMaps(Cells(TwoSeeds()), Exchanged(), ZeroAndMean(),
                                 results::AblationMetric::kAccuracyDrop);
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_TRUE(maps[0].by_rank);
  EXPECT_THAT(maps[0].map.values,
              ElementsAre(DoubleEq(0.5), DoubleEq(0.015), DoubleEq(0.25), DoubleEq(0.05)));
  EXPECT_THAT(maps[0].map.muted, ElementsAre(false, true, false, false));
  EXPECT_THAT(maps[0].leads, ElementsAre("layer 0: another head leads in each of 2 seeds",
                                         "layer 1: head 1 leads in 2 of 2 seeds"));
  const std::string text = AblationMapText(maps[0], {.width = 160});
  EXPECT_THAT(text, HasSubstr("mean of 2 seeds by rank)\nrank          1      2\n"
                              "layer 0    50.0    1.5?\n"));
  EXPECT_THAT(text, HasSubstr("seed 1 (job 2)\nhead          0      1\n"
                              "layer 0     1.0?  40.0\n"));
}

TEST(HeadOrderTest, AnEncodingThatTellsHeadsApartKeepsTheirNumbers) {
  const std::vector<v1::JobRow> seeds = {MakeJob(1, "alibi", 0, v1::JOB_STATE_SUCCEEDED, 1),
                                         MakeJob(2, "alibi", 1, v1::JOB_STATE_SUCCEEDED, 1)};
  const auto metric = results::AblationMetric::kAccuracyDrop;
  const auto maps = AblationMaps(Cells(seeds), Exchanged(), ZeroAndMean(), metric);
  EXPECT_FALSE(maps.at(0).by_rank);
  EXPECT_DOUBLE_EQ(maps[0].map.values[0], 0.305);
  EXPECT_TRUE(
      AblationMaps(Cells(seeds), Exchanged(), ZeroAndMean(), metric, results::HeadOrder::kRank)
          .at(0)
          .by_rank);
  const auto one = AblationMaps(Cells({TwoSeeds()[0]}), Exchanged(), ZeroAndMean(), metric);
  EXPECT_FALSE(one.at(0).by_rank) << "one seed's heads have their numbers";
  EXPECT_TRUE(one[0].seeds.empty() && one[0].leads.empty());
}

TEST(HeadOrderTest, ALayerInWhichNothingCountsHasNoLead) {
  const results::CellTable cells = Cells(TwoSeeds());
  const auto means = results::MeanAblations(cells, {Head(1, 0, 0, 0.02), Head(2, 0, 0, 0.01)},
                                            ZeroAndMean(), results::AblationMetric::kAccuracyDrop);
  ASSERT_EQ(means.size(), 1u);
  EXPECT_EQ(results::LeadText(means[0].leads.at(0)), "layer 0: no head leads");
  const render::Json json = results::ToJson(means[0]);
  EXPECT_EQ(json["heads_differ"], false);
  EXPECT_EQ(json["by_rank"]["counts"], render::Json::parse("[[0]]"));
  EXPECT_EQ(json["by_rank"]["significant"], render::Json::parse("[[0]]"));
  EXPECT_EQ(json["by_index"]["n"], render::Json::parse("[[2]]"));
  EXPECT_TRUE(json["leads"][0]["head"].is_null());
}

TEST(AblationJsonTest, RowsCarryTheirIntervals) {
  const render::Json json = results::WithIntervals(Head(1, 0, 0, 0.02));
  EXPECT_EQ(json["accuracy_drop"], 0.02) << "as stored, although it does not count";
  EXPECT_EQ(json["drop_counts"], false);
  EXPECT_NEAR(json["drop_interval"][0].get<double>(), 0.02 - 0.0196, 1e-5);
  EXPECT_NEAR(json["drop_interval"][1].get<double>(), 0.02 + 0.0196, 1e-5);
  EXPECT_EQ(json["nll_drop_counts"], true);
  const render::Json none = results::WithIntervals(v1::HeadAblationRow());
  EXPECT_TRUE(none["drop_interval"].is_null() && none["drop_counts"].is_null() &&
              none["correct"].is_null());
}

TEST(ParseAblationMetricTest, NamesWhatIsKnown) {
  EXPECT_EQ(*results::ParseAblationMetric("nll_drop"), results::AblationMetric::kNllDrop);
  EXPECT_THAT(std::string(results::ParseAblationMetric("nll").status().message()),
              HasSubstr("known: accuracy_drop, nll_drop, normalised_drop"));
}

TEST(ChooseTest, KeepsTheChosenAndNamesWhatThereIs) {
  v1::HeadAblationRow mean = Head(1, 0, 0, 0.1);
  mean.set_method("mean");
  std::vector<v1::HeadAblationRow> rows = {Head(1, 0, 0, 0.1), mean};
  EXPECT_TRUE(results::Choose({.method = "mean"}, rows).ok());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].method(), "mean");
  const absl::Status status = results::Choose({.method = "meen"}, rows);
  EXPECT_THAT(std::string(status.message()), StartsWith("method: no stored ablation"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("stored: mean"));
  std::vector<v1::HeadAblationRow> none;
  EXPECT_TRUE(results::Choose({.method = "mean"}, none).ok());
}

TEST(DescribeTest, SaysWhatIsNotADefault) {
  EXPECT_EQ(results::Describe(
                {"head_ablation", 1,
                 R"({"data":"all","hygiene":"authors","max_examples":2000,"method":"zero"})"}),
            "zero ablation, all data, authors hygiene, first 2000 examples, version 1");
  EXPECT_EQ(results::Describe({"cumulative_ablation", 1,
                               R"({"max_examples":2000,"method":"mean","orders":5,"steps":16})"}),
            "mean ablation, first 2000 examples, 5 random orders, 16 steps");
}

}  // namespace
}  // namespace pelab::client
