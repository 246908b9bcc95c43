// Jobs and analyses go to workers that have the analyses in the requested version.
#include "tests/unit/server/sched/scheduler_fixture.h"

namespace pelab::sched {
namespace {

using testing::HasSubstr;

constexpr char kProbe[] = R"([{"name":"probe","version":2,"parameters_json":"{}"}])";

// Adds the analysis "probe" to job 1, which is trained.
class AnalysisDispatchTest : public SchedulerTest {
 protected:
  AnalysisDispatchTest() {
    Submit("s", 1);
    trainer_ = Connect("trainer", 1, {}, R"({"analyses":[]})");
    const store::Assignment a = trainer_->assignments.at(0);
    Say(a, 1, StartedEvent(0, 1));
    Say(a, 2, OneWrong());
    Say(a, 3, ArtifactEvent(store::kWeightsName, std::string(64, 'a'), 7));
    Say(a, 4, SucceededEvent());
  }
  void Ask() {
    const auto asked = Do<store::Analyzed>(
        store::Analyze{.jobs = {1}, .sweep_id = 1, .analyses = {{"probe", 2, "{}"}}, .now = 1});
    EXPECT_EQ(asked.queued, 1);
    scheduler_->Expanded(asked.jobs);
    world_.Settle();
  }
  std::shared_ptr<Link> trainer_;
};

TEST_F(AnalysisDispatchTest, GoesToAWorkerThatHasItInThatVersion) {
  Ask();
  EXPECT_EQ(trainer_->assignments.size(), 1u);
  EXPECT_THAT(scheduler_->WaitingReason(1),
              HasSubstr("worker trainer: its trainer has no analysis probe"));
  const auto older = Connect("older", 1, {}, R"({"analyses":[{"name":"probe","version":1}]})");
  EXPECT_TRUE(older->assignments.empty());
  const auto able = Connect("able", 1, {}, R"({"analyses":[{"name":"probe","version":2}]})");
  ASSERT_EQ(able->assignments.size(), 1u);
  EXPECT_EQ(able->assignments[0].weights->bytes, 7u);
  EXPECT_EQ(scheduler_->WaitingReason(1), "");
}

TEST_F(AnalysisDispatchTest, ALostWorkersAnalysisGoesToAnother) {
  Ask();
  const auto first = Connect("first", 1);
  ASSERT_EQ(first->assignments.size(), 1u);
  Say(first->assignments[0], 1, StartedEvent(1, 1));
  const auto second = Connect("second", 1);
  EXPECT_TRUE(second->assignments.empty());
  scheduler_->Disconnected("first", first.get());
  for (int i = 0; i < 25; ++i) {
    world_.Advance(absl::Seconds(1));
    scheduler_->Heartbeat("second", second.get(), {});
  }
  ASSERT_EQ(second->assignments.size(), 1u);
  EXPECT_TRUE(second->assignments[0].weights.has_value());
  Say(second->assignments[0], 1, StartedEvent(1, 1));
  Say(second->assignments[0], 2, ResultOf("probe", "{}", 0, 2));
  Say(second->assignments[0], 3, SucceededEvent());
  EXPECT_EQ(Text("SELECT state FROM jobs"), "succeeded");
}

TEST_F(AnalysisDispatchTest, ACancelledAnalysisIsStoppedAndItsSlotComesBack) {
  Ask();
  const auto link = Connect("w", 1);
  ASSERT_EQ(link->assignments.size(), 1u);
  Say(link->assignments[0], 1, StartedEvent(1, 1));
  scheduler_->Cancelled(Do<store::Cancelled>(store::CancelJob{1, 2}));
  ASSERT_EQ(link->stops.size(), 1u);
  EXPECT_EQ(link->stops[0].second, StopReason::kCancelled);
  Say(link->assignments[0], 2, EndEvent(v1::ATTEMPT_OUTCOME_CANCELLED));
  EXPECT_EQ(Text("SELECT state FROM jobs"), "succeeded");
  Submit("next", 2);  // one for each worker
  EXPECT_EQ(link->assignments.size() + trainer_->assignments.size(), 4u);
}

TEST_F(SchedulerTest, SaysWhatNobodyCanRunEvenWhileOthersRun) {
  const std::int64_t sweep = Submit("s", 1);
  const auto link = Connect("w", 2, {}, R"({"analyses":[]})");
  ASSERT_EQ(link->assignments.size(), 1u);
  // The same sweep has a job that needs more.
  store::ReadyJob job{.job_id = 99, .sweep_id = sweep, .ordinal = 1};
  job.requirement = {.device_kind = "any", .analyses = {{"probe", 2}}};
  scheduler_->AddReady(job);
  world_.Settle();
  EXPECT_THAT(
      scheduler_->WaitingReason(sweep),
      testing::AllOf(HasSubstr("can run some of its jobs"), HasSubstr("no analysis probe")));
}

TEST_F(SchedulerTest, TrainingWaitsForAWorkerWithItsAnalyses) {
  const std::int64_t sweep = Submit("s", 1, 0, "any", kProbe);
  const auto link = Connect("w", 1, {}, R"({"analyses":[]})");
  EXPECT_TRUE(link->assignments.empty());
  EXPECT_THAT(scheduler_->WaitingReason(sweep), HasSubstr("no connected worker can run it"));
  EXPECT_EQ(
      Connect("able", 1, {}, R"({"analyses":[{"name":"probe","version":2}]})")->assignments.size(),
      1u);
}

}  // namespace
}  // namespace pelab::sched
