#include "client/report/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/client/jobs_for_test.h"

namespace pelab::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kDone = v1::JOB_STATE_SUCCEEDED;

CellTable Build(const std::vector<v1::JobRow>& jobs,
                const std::vector<std::string>& group_by = {}) {
  auto table = BuildCells(jobs, "test_accuracy", group_by);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.value_or(CellTable());
}

TEST(CellsTest, SeedsOfOneConfigurationAreOneCell) {
  const CellTable table =
      Build({MakeJob(1, "nope", 0, kDone, 100), MakeJob(2, "nope", 1, kDone, 300),
             MakeJob(3, "rope", 0, kDone, 700), MakeJob(4, "rope", 1, kDone, 700)});
  EXPECT_THAT(table.columns, ElementsAre("pe", "task"))
      << "data sets that follow the seed are no axis";
  ASSERT_EQ(table.cells.size(), 2u);
  EXPECT_EQ(table.cells[0].Label(), "nope distance");
  EXPECT_DOUBLE_EQ(*table.cells[0].summary.mean, 0.2);
  EXPECT_EQ(table.cells[1].summary.n, 2);
  EXPECT_TRUE(table.complete());
}

TEST(CellsTest, AFixedDataSeedIsOneCellToo) {
  const CellTable table = Build({MakeJob(1, "nope", 0, kDone, 100, "0.001", 7),
                                 MakeJob(2, "nope", 1, kDone, 300, "0.001", 7)});
  EXPECT_EQ(table.cells.size(), 1u);
  const CellTable zero = Build({MakeJob(1, "nope", 0, kDone, 100, "0.001", 0),
                                MakeJob(2, "nope", 1, kDone, 300, "0.001", 0)});
  EXPECT_EQ(zero.cells.size(), 1u) << "seed 0 with data seed 0 is fixed like the others";
}

TEST(CellsTest, WhatElseDiffersBecomesAColumn) {
  const CellTable table = Build(
      {MakeJob(1, "rope", 0, kDone, 100, "0.001"), MakeJob(2, "rope", 1, kDone, 100, "0.001"),
       MakeJob(3, "rope", 0, kDone, 500, "0.003"), MakeJob(4, "nope", 0, kDone, 500, "0.003")});
  EXPECT_THAT(table.columns, ElementsAre("pe", "task", "train.lr"));
  ASSERT_EQ(table.cells.size(), 3u);
  EXPECT_EQ(table.cells[1].Label(), "rope distance 0.003");
}

TEST(CellsTest, OnlySucceededJobsCount) {
  const CellTable table =
      Build({MakeJob(1, "rope", 0, kDone, 600), MakeJob(2, "rope", 1, v1::JOB_STATE_RUNNING, 999),
             MakeJob(3, "rope", 2, v1::JOB_STATE_QUEUED, 0),
             MakeJob(4, "rope", 3, v1::JOB_STATE_FAILED, 999),
             MakeJob(5, "rope", 4, v1::JOB_STATE_CANCELLED, 999)});
  ASSERT_EQ(table.cells.size(), 1u);
  const stats::SeedSummary& s = table.cells[0].summary;
  EXPECT_EQ(s.n, 1);
  EXPECT_EQ(s.missing, 2);
  EXPECT_EQ(s.failed, 2);
  EXPECT_EQ(s.mean, 0.6);
  EXPECT_FALSE(table.complete());
  const render::Json json = ToJson(table, table.cells[0]);
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["seeds"], render::Json::parse("[0,1,2,3,4]"));
  EXPECT_TRUE(json["half_width"].is_null());
}

TEST(CellsTest, GroupByTellsWhatItMixes) {
  const CellTable table = Build(
      {MakeJob(1, "rope", 0, kDone, 100, "0.001"), MakeJob(2, "rope", 0, kDone, 500, "0.003")},
      {"pe"});
  ASSERT_EQ(table.cells.size(), 1u);
  EXPECT_THAT(table.mixed, ElementsAre("train.lr"));
  const CellTable by_lr = Build(
      {MakeJob(1, "rope", 0, kDone, 100, "0.001"), MakeJob(2, "rope", 0, kDone, 500, "0.003")},
      {"pe", "train.lr"});
  EXPECT_EQ(by_lr.cells.size(), 2u);
  EXPECT_TRUE(by_lr.mixed.empty());
}

TEST(CellsTest, UnknownNamesAreRefused) {
  EXPECT_THAT(std::string(BuildCells({}, "accuracy", {}).status().message()),
              HasSubstr("known: test_accuracy"));
  EXPECT_THAT(std::string(BuildCells({}, "test_accuracy", {"train.lrr"}).status().message()),
              HasSubstr("did you mean train.lr"));
}

}  // namespace
}  // namespace pelab::client
