#include "client/terminal/result_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "tests/unit/core/results/cells_fixture.h"
#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

v1::CurveRow Epoch(std::int64_t job, int epoch, double accuracy) {
  v1::CurveRow row;
  row.set_job_id(job);
  row.set_epoch(epoch);
  row.set_test_accuracy(accuracy);
  row.set_train_loss(-accuracy);
  return row;
}

TEST(CellTableTextTest, GoldenWithAnIncompleteCell) {
  const results::CellTable table = Cells({MakeJob(1, "nope", 0, v1::JOB_STATE_SUCCEEDED, 300),
                                          MakeJob(2, "nope", 1, v1::JOB_STATE_SUCCEEDED, 400),
                                          MakeJob(3, "rope", 0, v1::JOB_STATE_SUCCEEDED, 700),
                                          MakeJob(4, "rope", 1, v1::JOB_STATE_FAILED, 0),
                                          MakeJob(5, "alibi", 0, v1::JOB_STATE_QUEUED, 0)});
  // t(0.975, 1) * 0.0707106781 / sqrt(2) = 0.63531
  EXPECT_EQ(CellTableText(table, {.color = false, .width = 80}),
            "pe     task      test_accuracy    95% interval    n  seeds\n"
            "nope   distance         0.3500  0.0000..0.9853  2/2  0.3000 0.4000\n"
            "rope   distance        ~0.7000               -  1/2  1 failed\n"
            "alibi  distance              -               -  0/1  1 missing\n"
            "~ not every seed of this group has a result\n");
}

TEST(CellTableTextTest, EpochsThatSomeSeedsNeverReached) {
  std::vector<v1::JobRow> jobs;
  for (int i = 0; i < 5; ++i) {
    jobs.push_back(MakeJob(i + 1, i < 3 ? "rope" : "nope", i, v1::JOB_STATE_SUCCEEDED, 900));
    jobs.back().set_epochs_done(20);
  }
  const results::MetricValues values = {{1, 12.0}, {2, 5.0}};
  const auto table =
      results::BuildCells(results::JobList(jobs),
                          {.metric = *results::ParseMetric("epochs_to(0.9)"), .values = &values});
  ASSERT_TRUE(table.ok());
  const std::string text = CellTableText(*table, {.color = false, .width = 100});
  EXPECT_THAT(text, HasSubstr("  12  2/3  12 5 >19, not reached by 1 of 3\n"));
  EXPECT_THAT(text, HasSubstr("> 19  0/2  >19 >19, not reached by 2 of 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("will change"))) << "nothing more will come";
}

TEST(CellTableTextTest, SaysWhatDiverged) {
  std::vector<v1::JobRow> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(MakeJob(i + 1, "rope", i, v1::JOB_STATE_SUCCEEDED, 900));
  }
  jobs[2].set_diverged(true);
  const std::string text = CellTableText(Cells(jobs), {.color = false, .width = 100});
  EXPECT_THAT(text, HasSubstr("4/4  1 of 4 diverged\n"));
  EXPECT_THAT(text, HasSubstr("diverged: final losses"));
}

TEST(CurveSeriesTest, GoesAsFarAsEverySeedThatHasBegun) {
  const results::CellTable table = Cells({MakeJob(1, "rope", 0, v1::JOB_STATE_SUCCEEDED, 1),
                                          MakeJob(2, "rope", 1, v1::JOB_STATE_RUNNING, 1),
                                          MakeJob(3, "rope", 2, v1::JOB_STATE_QUEUED, 1)});
  results::MeanCurves means(table, "test_accuracy");
  means.Add(std::vector{Epoch(1, 0, 0.2), Epoch(1, 1, 0.4)});  // a page may end within a job
  means.Add(std::vector{Epoch(1, 2, 0.9), Epoch(2, 0, 0.4), Epoch(2, 1, 0.5), Epoch(9, 0, 5)});
  const std::vector<render::Series> series = CurveSeries(table, means.Curves());
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].label, "rope distance, mean of 2 of 3 seeds");
  ASSERT_EQ(series[0].points.size(), 2u);
  EXPECT_EQ(series[0].points[0].first, 0);
  EXPECT_DOUBLE_EQ(series[0].points[0].second, 0.3);
  EXPECT_DOUBLE_EQ(series[0].points[1].second, 0.45);
  results::MeanCurves losses(table, "train_loss");
  EXPECT_TRUE(CurveSeries(table, losses.Curves()).empty());
  losses.Add(std::vector{Epoch(1, 0, 0.2)});
  EXPECT_DOUBLE_EQ(CurveSeries(table, losses.Curves())[0].points[0].second, -0.2);
}

TEST(CurveSeriesTest, AFailedSeedHoldsUpNobody) {
  const results::CellTable table = Cells({MakeJob(1, "rope", 0, v1::JOB_STATE_SUCCEEDED, 1),
                                          MakeJob(2, "rope", 1, v1::JOB_STATE_FAILED, 1),
                                          MakeJob(3, "nope", 0, v1::JOB_STATE_FAILED, 1),
                                          MakeJob(4, "nope", 1, v1::JOB_STATE_CANCELLED, 1)});
  results::MeanCurves means(table, "test_accuracy");
  means.Add(std::vector{Epoch(1, 0, 0.2), Epoch(1, 1, 0.4), Epoch(2, 0, 0.9), Epoch(3, 0, 0.3),
                        Epoch(3, 1, 0.7), Epoch(4, 0, 0.5)});
  const std::vector<render::Series> series = CurveSeries(table, means.Curves());
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].label, "rope distance, mean of 1 of 2 seeds");
  ASSERT_EQ(series[0].points.size(), 2u);
  EXPECT_DOUBLE_EQ(series[0].points[0].second, 0.2);
  EXPECT_EQ(series[1].label, "nope distance, mean of 2 seeds") << "they are all there is";
  ASSERT_EQ(series[1].points.size(), 1u);
  EXPECT_DOUBLE_EQ(series[1].points[0].second, 0.4);
}

}  // namespace
}  // namespace pelab::client
