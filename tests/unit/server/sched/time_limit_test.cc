// Workers with a time limit get no job whose next epoch would not end in time.
#include "server/sched/worker_rows.h"
#include "tests/unit/server/sched/scheduler_fixture.h"

namespace pelab::sched {
namespace {

class TimeLimitTest : public SchedulerTest {
 protected:
  // Runs a job of the sweep, whose seeds are `seeds`, on a worker without a limit. Its epoch takes
  // `seconds`.
  void RunOneOf(const std::string& sweep, double seconds) {
    const auto link = Connect("measures", 1);
    ASSERT_EQ(link->assignments.size(), 1u) << sweep;
    Say(link->assignments[0], 1, StartedEvent(0, 1));
    v1::Epoch epoch = OneWrong();
    epoch.set_seconds(seconds);
    Say(link->assignments[0], 2, epoch);
    scheduler_->Drain("measures", v1::Drain::FINISH);
    Say(link->assignments[0], 3, SucceededEvent());
  }
};

TEST_F(TimeLimitTest, NothingStartsWithinTheMargin) {
  Submit("s", 2);
  EXPECT_TRUE(ConnectFor("late", absl::Seconds(120), absl::Seconds(120))->assignments.empty());
  EXPECT_EQ(scheduler_->WaitingReason(1), "every connected worker is near its time limit");
  const auto early = ConnectFor("early", absl::Seconds(121), absl::Seconds(120));
  ASSERT_EQ(early->assignments.size(), 1u);
  world_.Advance(absl::Seconds(1));
  Succeed(early->assignments[0]);
  EXPECT_EQ(early->assignments.size(), 1u) << "its time is over";
}

TEST_F(TimeLimitTest, TheNextEpochHasToEndInTime) {
  SubmitSeeds("s", 1, 9);
  RunOneOf("s", 100);
  // Two epochs are the margin, and one more is to be run.
  EXPECT_TRUE(ConnectFor("short", absl::Seconds(300), absl::Seconds(120))->assignments.empty());
  EXPECT_EQ(ConnectFor("long", absl::Seconds(301), absl::Seconds(120))->assignments.size(), 1u);
  // Of quick epochs the worker's own margin counts.
  EXPECT_TRUE(ConnectFor("margin", absl::Seconds(350), absl::Seconds(250))->assignments.empty());
  EXPECT_EQ(ConnectFor("enough", absl::Seconds(351), absl::Seconds(250))->assignments.size(), 1u);
}

TEST_F(TimeLimitTest, AJobThatDoesNotFitWaitsForAnotherWorker) {
  SubmitSeeds("s", 1, 2);
  RunOneOf("s", 1000);
  EXPECT_TRUE(ConnectFor("short", absl::Seconds(500), absl::Seconds(1))->assignments.empty());
  const auto other = Connect("other", 1);
  ASSERT_EQ(other->assignments.size(), 1u);
  Succeed(other->assignments[0]);
  EXPECT_EQ(Text("SELECT count(*) FROM jobs WHERE state = 'succeeded'"), "2");
}

TEST_F(TimeLimitTest, OtherConfigurationsAreNotHeldBack) {
  SubmitSeeds("slow", 1, 1);
  RunOneOf("slow", 1000);
  SubmitSeeds("other", 1, 1);
  EXPECT_EQ(ConnectFor("short", absl::Seconds(500), absl::Seconds(1))->assignments.size(), 1u);
}

TEST_F(TimeLimitTest, TheSlotTakesAnotherJobThanTheOnesThatDoNotFit) {
  const std::int64_t slow = SubmitSeeds("slow", 1, 9);
  RunOneOf("slow", 1000);
  const auto link = ConnectFor("short", absl::Seconds(500), absl::Seconds(1));
  EXPECT_TRUE(link->assignments.empty());
  EXPECT_EQ(scheduler_->WaitingReason(slow),
            "worker short is free, but has no time left for three epochs of these jobs "
            "(--time-limit)");
  SubmitSeeds("other", 1, 1);
  ASSERT_EQ(link->assignments.size(), 1u);
  EXPECT_EQ(Text("SELECT name FROM v_jobs AS j JOIN sweep_jobs USING (job_id) JOIN sweeps USING "
                 "(sweep_id) WHERE j.job_id = " +
                 std::to_string(link->assignments[0].job_id)),
            "other");
  // The others kept their places.
  EXPECT_EQ(Connect("long", 8)->assignments.size(), 8u);
}

TEST_F(TimeLimitTest, TheStatusSaysHowMuchIsLeft) {
  ConnectFor("w", absl::Seconds(100), absl::Seconds(1));
  world_.Advance(absl::Seconds(5));
  const std::vector<WorkerStatus> statuses = scheduler_->Workers();
  ASSERT_EQ(statuses.size(), 1u);
  EXPECT_EQ(statuses[0].time_left, absl::Seconds(95));
  v1::ListWorkersResponse rows;
  rows.add_workers()->set_worker_id("w");
  AddWorkerStatuses(statuses, absl::FromUnixMillis(1'000'000), rows);
  EXPECT_EQ(rows.workers(0).time_left_ms(), 95'000u);
}

}  // namespace
}  // namespace pelab::sched
