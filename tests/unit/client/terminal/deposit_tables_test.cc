#include "client/terminal/deposit_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "tests/unit/core/results/cells_fixture.h"
#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kParameters[] =
    R"({"data":"test","hygiene":"clean","max_examples":0,"method":"zero","target":"head"})";

results::Variants NineJobs() {
  results::Variants variants;
  for (int job = 1; job <= 9; ++job) variants[job] = {"head_ablation", 2, kParameters};
  return variants;
}

v1::DepositRow Row(std::int64_t job, double max_drop, int top_layer, int deposits) {
  v1::DepositRow row;
  row.set_job_id(job);
  row.set_analysis_id(job);
  row.set_max_drop(max_drop);
  row.set_top_share(0.8);
  row.set_gini(0.7);
  row.set_effective_heads(1.5);
  row.set_top_layer(top_layer);
  row.set_top_head(2);
  row.set_deposits(deposits);
  return row;
}

v1::DepositRow LayerRow(std::int64_t job, int layer, bool deposit) {
  v1::DepositRow row = Row(job, 0.5, layer, 0);
  row.clear_deposits();
  row.set_layer(layer);
  row.set_deposit(deposit);
  return row;
}

// A row for an accuracy that does not stand out from chance.
v1::DepositRow NullRow(std::int64_t job) {
  v1::DepositRow row;
  row.set_job_id(job);
  row.set_analysis_id(job);
  return row;
}

TEST(DepositGroupsTest, OverSeeds) {
  const results::CellTable cells =
      Cells({MakeJob(1, "rope", 0, kDone, 1), MakeJob(2, "rope", 1, kDone, 1),
             MakeJob(3, "rope", 2, kDone, 1)});
  const auto groups = results::DepositGroups(
      cells, {Row(1, 0.5, 1, 1), Row(2, 0.7, 2, 0), Row(3, 0.6, 2, 2)}, NineJobs(), false);
  ASSERT_EQ(groups.size(), 1u);
  const results::DepositGroup& group = groups[0];
  EXPECT_TRUE(group.seeds.complete());
  EXPECT_NEAR(*group.max_drop.mean, 0.6, 1e-12);
  EXPECT_NEAR(*group.max_drop.half_width, 4.302652729749464 * 0.1 / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(group.deposit_seeds, 2);
  EXPECT_EQ(group.judged, 3);
  EXPECT_EQ(group.top, 2);
  EXPECT_EQ(group.top_seeds, 2);
  EXPECT_EQ(group.placed, 3);
  EXPECT_FALSE(group.top_ratio.mean.has_value());
}

TEST(DepositGroupsTest, MissingFailedAndMeaninglessAreToldApart) {
  const results::CellTable cells =
      Cells({MakeJob(1, "nope", 0, kDone, 1), MakeJob(2, "nope", 1, kDone, 1),
             MakeJob(3, "nope", 2, v1::JOB_STATE_FAILED, 1),
             MakeJob(4, "nope", 3, v1::JOB_STATE_RUNNING, 1), MakeJob(5, "nope", 4, kDone, 1)});
  const auto groups =
      results::DepositGroups(cells, {Row(1, 0.5, 1, 0), NullRow(2)}, NineJobs(), false);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].seeds.n, 2);
  EXPECT_EQ(groups[0].undefined, 1);
  EXPECT_EQ(groups[0].seeds.failed, 1);
  EXPECT_EQ(groups[0].seeds.missing, 2) << "one runs, one was never analyzed";
  EXPECT_EQ(groups[0].max_drop.n, 1);
  EXPECT_EQ(groups[0].judged, 1);
  const render::Json json = results::ToJson(cells, groups[0]);
  EXPECT_EQ(json["undefined"], 1);
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["max_drop"]["n"], 1);
  EXPECT_TRUE(json["max_drop"]["half_width"].is_null());
  EXPECT_EQ(json["analysis"]["parameters"]["method"], "zero");
}

TEST(DepositGroupsTest, ByLayer) {
  const results::CellTable cells =
      Cells({MakeJob(1, "rope", 0, kDone, 1), MakeJob(2, "rope", 1, kDone, 1)});
  const std::vector<v1::DepositRow> rows = {Row(1, 0.5, 1, 1),     LayerRow(1, 0, false),
                                            LayerRow(1, 1, true),  Row(2, 0.5, 1, 1),
                                            LayerRow(2, 0, false), LayerRow(2, 1, true)};
  EXPECT_EQ(results::DepositGroups(cells, rows, NineJobs(), false).size(), 1u);
  const auto groups = results::DepositGroups(cells, rows, NineJobs(), true);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_FALSE(groups[0].layer.has_value());
  EXPECT_EQ(groups[1].layer, 0);
  EXPECT_EQ(groups[1].deposit_seeds, 0);
  EXPECT_EQ(groups[2].deposit_seeds, 2);
  EXPECT_EQ(groups[2].top, 2) << "of a layer: the head";
  const render::Json json = results::ToJson(cells, groups[2]);
  EXPECT_EQ(json["top_head"], 2);
  EXPECT_FALSE(json.contains("top_layer"));
}

TEST(DepositTableTest, Golden) {
  const results::CellTable cells =
      Cells({MakeJob(1, "rope", 0, kDone, 1), MakeJob(2, "rope", 1, kDone, 1),
             MakeJob(3, "nope", 0, kDone, 1), MakeJob(4, "alibi", 0, v1::JOB_STATE_FAILED, 1),
             MakeJob(5, "alibi", 1, v1::JOB_STATE_QUEUED, 1), MakeJob(6, "mla", 0, kDone, 1),
             MakeJob(7, "mla", 1, v1::JOB_STATE_RUNNING, 1)});
  const auto groups = results::DepositGroups(
      cells, {Row(1, 0.60, 1, 1), Row(2, 0.61, 1, 0), NullRow(3), Row(6, 0.25, 0, 0)}, NineJobs(),
      false);
  // 0.605 with a half width of t(0.975, 1) * 0.00707 / sqrt(2) = 0.0635.
  EXPECT_EQ(DepositTableText(cells, groups, {.color = false, .width = 120}),
            &R"(
zero ablation, test data, clean hygiene:
pe     task      max drop  top share       gini  eff. heads  deposit  largest in      seeds
rope   distance  60.5±6.4  0.80±0.00  0.70±0.00     1.5±0.0      1/2  layer 1 (2/2)   2
nope   distance         -          -          -           -        -  -               )"
             R"(0/1, 1 undefined
alibi  distance         -          -          -           -        -  -               )"
             R"(0/2, 1 missing, 1 failed
mla    distance     ~25.0      ~0.80      ~0.70        ~1.5      0/1  layer 0 head 2  1/2, 1 missing

max drop in points; ± the 95% interval over seeds; deposit: seeds that have one
undefined: the accuracy is less than 5 standard errors above chance, or no head's drop )"
             R"(exceeds 3 of its own
~ not every seed of this group has indices
)"[1]);
}

TEST(DepositTableTest, AMeanOverTheSeedsWithDefinedIndicesIsMarked) {
  const results::CellTable cells =
      Cells({MakeJob(1, "rope", 0, kDone, 1), MakeJob(2, "rope", 1, kDone, 1),
             MakeJob(3, "rope", 2, v1::JOB_STATE_QUEUED, 1)});
  const auto groups =
      results::DepositGroups(cells, {Row(1, 0.5, 1, 0), NullRow(2)}, NineJobs(), false);
  const std::string text = DepositTableText(cells, groups, {.color = true, .width = 80});
  for (const char* part : {" ~50.0 ", " ~0.80 ", " ~0.70 ", " ~1.5 "}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, HasSubstr("\x1b[33mrope")) << "colored as in results";
  const std::string wide = DepositTableText(cells, groups, {.color = false, .width = 120});
  EXPECT_THAT(wide, HasSubstr("  1/3, 1 missing, 1 undefined\n"));
  EXPECT_THAT(wide, HasSubstr("~ not every seed of this group has indices\n"));
}

TEST(DepositTableTest, SeveralKindsAreNamed) {
  const results::CellTable cells = Cells({MakeJob(1, "rope", 0, kDone, 1)});
  results::Variants variants = NineJobs();
  variants[2] = {"head_ablation", 2, R"({"data":"test","hygiene":"clean","method":"mean"})"};
  v1::DepositRow other = Row(1, 0.1, 0, 0);
  other.set_analysis_id(2);
  const auto groups = results::DepositGroups(cells, {Row(1, 0.5, 1, 1), other}, variants, false);
  const std::string text = DepositTableText(cells, groups, {.color = false, .width = 200});
  const std::size_t mean = text.find("mean ablation, test data, clean hygiene:\n");
  const std::size_t zero = text.find("zero ablation, test data, clean hygiene:\n");
  ASSERT_NE(mean, std::string::npos) << text;
  EXPECT_THAT(text.substr(zero, mean - zero), HasSubstr("50.0"));
  EXPECT_THAT(text.substr(zero, mean - zero), Not(HasSubstr("10.0")));
  EXPECT_THAT(text.substr(mean), HasSubstr("10.0"));
  const render::Json flat = results::FlatJson(cells, groups[0]);
  for (const std::string& column : results::DepositGroupColumns(cells)) {
    EXPECT_TRUE(column == "top_head" || flat.contains(column)) << column;
  }
  EXPECT_EQ(flat["max_drop_mean"], 0.5);
}

}  // namespace
}  // namespace pelab::client
