// Shortcuts beside accuracies, and how the evidence of a sheet grew.
#include "core/results/shortcuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "core/experiment/canonical_json.h"
#include "core/results/sheet_history.h"

namespace pelab::results {
namespace {

v1::JobRow Row(std::int64_t id, const std::string& protocol, const std::string& task,
               std::int64_t seed) {
  v1::JobRow row;
  row.set_job_id(id);
  row.set_task(task);
  row.set_protocol(protocol);
  row.set_seed(seed);
  row.set_spec_json(ToCanonicalJson(experiment::MakeJob(protocol, "rope", task, seed)));
  return row;
}

TEST(ShortcutsTest, EachTaskAndProtocolIsNamedOnce) {
  const JobList jobs({Row(1, "published", "distance", 0), Row(2, "published", "distance", 1),
                      Row(3, "clean", "counting", 0)});
  // (70 * 25 + 2 * 300) / (70 * 625) from the length; (100 / 128 + 1) / 101 from one place.
  EXPECT_EQ(ShortcutsText(jobs),
            "without doing the task: distance published 5.4 % of at most 97.5 % (the length "
            "alone), counting clean 1.8 % of at most 100 % (one place alone)");
  EXPECT_NEAR(LimitsOf(jobs, jobs.rows()[0])->shortcut.accuracy, 2350.0 / 43750, 1e-12);
  EXPECT_EQ(ShortcutsText(JobList()), "");
}

TEST(ShortcutsTest, ASpecOfAnotherVersionHasNone) {
  v1::JobRow row = Row(1, "clean", "distance", 0);
  row.set_spec_json("{\"format\":99}");
  const JobList jobs({row});
  EXPECT_EQ(ShortcutsText(jobs), "");
  EXPECT_FALSE(LimitsOf(jobs, jobs.rows()[0]).has_value());
}

v1::SheetClaimRow Claim(std::int64_t round, std::int64_t position, std::int64_t seeds,
                        double log_e_holds, double log_e_fails) {
  v1::SheetClaimRow row;
  row.set_round(round);
  row.set_position(position);
  row.set_seeds(seeds);
  row.set_log_e_holds(log_e_holds);
  row.set_log_e_fails(log_e_fails);
  return row;
}

TEST(SheetHistoryTest, ARoundWithoutNewSeedsAddsNothing) {
  const auto histories = SheetHistories({Claim(1, 0, 1, 0.4, -0.7), Claim(1, 1, 1, -0.7, 0.4),
                                         Claim(2, 0, 2, 0.85, -1.1), Claim(2, 1, 1, -0.7, 0.4)});
  ASSERT_EQ(histories.size(), 2u);
  EXPECT_EQ(histories.at(0).size(), 2u);
  EXPECT_EQ(histories.at(1).size(), 1u);
  EXPECT_EQ(histories.at(0)[1][0], 2);
  EXPECT_NEAR(histories.at(0)[1][1].get<double>(), 0.85 / std::log(10), 1e-12);
  EXPECT_NEAR(histories.at(1)[0][1].get<double>(), 0.4 / std::log(10), 1e-12);
}

}  // namespace
}  // namespace pelab::results
