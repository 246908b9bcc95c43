// The learning rate against the values of tests/golden/training.py.
#include "worker/trainer/train/schedule.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/trainer/jobs_fixture.h"

namespace pelab::trainer {
namespace {

TEST(Schedule, MatchesTheGoldenValues) {
  const nlohmann::json cases = Golden("training.json")["schedule"];
  ASSERT_EQ(cases.size(), 6u);
  for (const auto& golden : cases) {
    SCOPED_TRACE(golden["schedule"].get<std::string>() + ", steps " + golden["steps"].dump());
    const experiment::Job job =
        SmallJob("clean", "nope", "distance",
                 {{"train.lr", golden["lr"].get<double>()},
                  {"train.schedule", golden["schedule"].get<std::string>()},
                  {"train.warmup_fraction", golden["warmup_fraction"].get<double>()}});
    const Schedule schedule(job, golden["steps"]);
    for (std::size_t i = 0; i < golden["at"].size(); ++i) {
      EXPECT_DOUBLE_EQ(schedule.RateAt(golden["at"][i]), golden["rates"][i].get<double>())
          << "step " << golden["at"][i];
    }
  }
}

TEST(Schedule, FirstStepOfAWarmUpHasRateZeroAndThePeakIsReached) {
  const Schedule schedule(SmallJob("clean", "nope", "distance", {{"train.lr", 0.5}}), 100);
  EXPECT_EQ(schedule.RateAt(0), 0);
  EXPECT_EQ(schedule.RateAt(6), 0.5);
  EXPECT_GT(schedule.RateAt(99), 0);
  EXPECT_LT(schedule.RateAt(99), 1e-3);
}

}  // namespace
}  // namespace pelab::trainer
