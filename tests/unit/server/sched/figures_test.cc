// The figures of the scheduler for metrics.
#include "tests/unit/server/sched/scheduler_fixture.h"

namespace pelab::sched {
namespace {

using testing::ElementsAre;

class FiguresTest : public SchedulerTest {
 protected:
  std::vector<std::size_t> Slots(const std::string& kind) const {
    const SchedulerFigures figures = scheduler_->Figures();
    const auto found = figures.slots.find(kind);
    if (found == figures.slots.end()) return {};
    return {found->second.busy, found->second.free, found->second.closed};
  }
  std::size_t Waiting(const std::string& kind) const {
    return scheduler_->Figures().waiting.at(kind);
  }
};

TEST_F(FiguresTest, SlotsAreBusyFreeOrClosed) {
  EXPECT_THAT(Slots("cpu"), ElementsAre(0, 0, 0));
  Submit("s", 1);
  Connect("w", 3);
  EXPECT_THAT(Slots("cpu"), ElementsAre(1, 2, 0));
  EXPECT_THAT(Slots("gpu"), ElementsAre(0, 0, 0));
  scheduler_->Drain("w", v1::Drain::FINISH);
  EXPECT_THAT(Slots("cpu"), ElementsAre(1, 0, 2));
  const auto link = ConnectFor("late", absl::Seconds(120), absl::Seconds(120));
  EXPECT_THAT(Slots("cpu"), ElementsAre(1, 0, 3)) << "it is about to end";
  scheduler_->Disconnected("late", link.get());
  EXPECT_THAT(Slots("cpu"), ElementsAre(1, 0, 2));
}

TEST_F(FiguresTest, QuarantinedWorkersAreClosed) {
  Submit("s", 4);
  const auto bad = Connect("bad", 3);
  ASSERT_EQ(bad->assignments.size(), 3u);
  Connect("good", 1);
  for (const auto& assignment : std::vector(bad->assignments)) Fail(assignment);
  const SchedulerFigures figures = scheduler_->Figures();
  ASSERT_EQ(figures.workers.size(), 2u);
  EXPECT_TRUE(figures.workers[0].quarantined);
  EXPECT_FALSE(figures.workers[1].quarantined);
  EXPECT_THAT(Slots("cpu"), ElementsAre(1, 0, 3));
}

TEST_F(FiguresTest, WaitingJobsCountByTheKindThatTheyNeed) {
  Submit("anywhere", 3);
  const std::int64_t gpu = Submit("gpu", 2, 0, "gpu");
  EXPECT_EQ(Waiting("any"), 3u);
  EXPECT_EQ(Waiting("gpu"), 2u);
  EXPECT_EQ(Waiting("cpu"), 0u);
  scheduler_->SetSweepSettings({.sweep_id = gpu, .paused = true});
  EXPECT_EQ(Waiting("gpu"), 0u);
  Connect("w", 2);
  EXPECT_EQ(Waiting("any"), 1u);
}

// Otherwise a slot that stays free would stand for one that is missing. Nobody would ask for that.
TEST_F(FiguresTest, AFreeSlotThatCanRunNothingThatWaitsDoesNotHelp) {
  const Slot slot{0, "cpu", "cpu", 0};
  Connect("w", 3, {}, R"({"pes":[{"name":"nope","version":1}]})");
  EXPECT_EQ(scheduler_->DemandFor(slot).free_slots, 3U) << "nothing waits";
  Submit("s", 2);
  EXPECT_EQ(scheduler_->DemandFor(slot).waiting_jobs, 2U);
  EXPECT_EQ(scheduler_->DemandFor(slot).free_slots, 0U);
  const Slot gpu{0, "cuda:0", "gpu", 0};
  EXPECT_EQ(scheduler_->DemandFor(gpu).free_slots, 0U);
}

TEST_F(FiguresTest, NoTwoWorkersHaveTheSameName) {
  Connect("aaaaaaaa-1", 1, {}, "{}", "gpu1");
  Connect("aaaaaaaa-2", 1, {}, "{}", "gpu1");
  Connect("bbbbbbbb-1", 1, {}, "{}", "gpu1");
  Connect("cccccccc-1", 1, {}, "{}", "gpu2");
  std::vector<std::string> names;
  for (const auto& worker : scheduler_->Figures().workers) names.push_back(worker.name);
  EXPECT_THAT(names,
              ElementsAre("gpu1 (aaaaaaaa-1)", "gpu1 (aaaaaaaa-2)", "gpu1 (bbbbbbbb)", "gpu2"));
}

TEST_F(FiguresTest, AWorkerThatComesBackUnderAnotherNameFreesItsFirst) {
  Connect("aaaaaaaa-1", 1, {}, "{}", "gpu1");
  Connect("bbbbbbbb-1", 1, {}, "{}", "gpu1");
  Connect("bbbbbbbb-1", 1, {}, "{}", "gpu2");
  std::vector<std::string> names;
  for (const auto& worker : scheduler_->Figures().workers) names.push_back(worker.name);
  EXPECT_THAT(names, ElementsAre("gpu1", "gpu2"));
}

TEST_F(FiguresTest, AWorkerThatLeftIsThereAsLongAsItHasAttempts) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  scheduler_->Disconnected("w", link.get());
  const SchedulerFigures figures = scheduler_->Figures();
  ASSERT_EQ(figures.workers.size(), 1u);
  EXPECT_FALSE(figures.workers[0].connected);
  world_.Advance(absl::Seconds(30));
  EXPECT_TRUE(scheduler_->Figures().workers.empty());
}

TEST_F(FiguresTest, GpuSecondsAreThoseOfPrincipals) {
  scheduler_->SetPrincipal("alice", {.share = 1, .gpu_seconds_used = 7});
  Submit("s", 1);
  Connect("w", 1);
  EXPECT_THAT(scheduler_->Figures().gpu_seconds,
              ElementsAre(testing::Pair("", 0), testing::Pair("alice", 7)));
}

TEST_F(FiguresTest, JobsWaitFromTheirEntryIntoTheQueue) {
  Submit("s", 2);
  world_.Advance(absl::Seconds(40));
  const auto link = Connect("w", 1);
  EXPECT_THAT(waits_, ElementsAre(absl::Seconds(40)));
  world_.Advance(absl::Seconds(5));
  Succeed(link->assignments[0]);
  EXPECT_THAT(waits_, ElementsAre(absl::Seconds(40), absl::Seconds(45)));
}

TEST_F(FiguresTest, TheWaitOfARetryBeginsAfterItsBackOff) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  Fail(link->assignments[0]);
  world_.Advance(absl::Seconds(10));
  ASSERT_EQ(waits_.size(), 2u);
  EXPECT_LT(waits_[1], absl::Seconds(1));
}

}  // namespace
}  // namespace pelab::sched
