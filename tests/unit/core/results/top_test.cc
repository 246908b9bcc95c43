#include "core/results/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::results {
namespace {

using ::testing::ElementsAre;

// Mean test accuracies: nope 0.2, alibi none, rope 0.7, shaw 0.2.
CellTable Table() {
  const JobList jobs({MakeJob(1, "nope", 0, kDone, 100), MakeJob(2, "nope", 1, kDone, 300),
                      MakeJob(3, "alibi", 0, v1::JOB_STATE_QUEUED, 0),
                      MakeJob(4, "rope", 0, kDone, 700), MakeJob(5, "shaw", 0, kDone, 200)});
  return *BuildCells(jobs, "test_accuracy", {});
}

std::vector<std::string> Names(const CellTable& table) {
  std::vector<std::string> names;
  for (const Cell& cell : table.cells) names.push_back(cell.values.front());
  return names;
}

TEST(TopTest, HighestFirstThenInTheirOrderThenWhatHasNoMean) {
  CellTable all = Table();
  EXPECT_EQ(KeepTop(all, 10).cells, 0u);
  EXPECT_THAT(Names(all), ElementsAre("rope", "nope", "shaw", "alibi"));
  CellTable three = Table();
  three.cells[3].summary.mean.reset();  // shaw's
  EXPECT_EQ(KeepTop(three, 3).without_mean, 2u);
  EXPECT_THAT(Names(three), ElementsAre("rope", "nope"));
  CellTable two = Table();
  const LeftOut left_out = KeepTop(two, 2);
  EXPECT_THAT(Names(two), ElementsAre("rope", "nope"));
  EXPECT_EQ(left_out.cells, 2u);
  EXPECT_EQ(left_out.without_mean, 1u);
}

TEST(TopTest, LowestFirstOfWhatIsBetterWhenLow) {
  CellTable table = Table();
  table.metric.name = "wall_seconds";  // the means stay the same
  KeepTop(table, 3);
  EXPECT_THAT(Names(table), ElementsAre("nope", "shaw", "rope"));
  for (const char* name : {"epochs_to(0.9)", "generalisation_gap", "wall_seconds"}) {
    EXPECT_TRUE(IsBetterWhenLow(*ParseMetric(name))) << name;
  }
  for (const char* name : {"test_accuracy", "best_test_accuracy", "gini", "max_drop"}) {
    EXPECT_FALSE(IsBetterWhenLow(*ParseMetric(name))) << name;
  }
  EXPECT_TRUE(IsBetterWhenLow({.name = "test_loss"}));
}

}  // namespace
}  // namespace pelab::results
