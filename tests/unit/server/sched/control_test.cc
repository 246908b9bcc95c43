// Pauses, priorities, drains and cancels that arrive while the scheduler assigns jobs.
#include "tests/unit/server/sched/scheduler_fixture.h"

namespace pelab::sched {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ControlTest : public SchedulerTest {
 protected:
  void Control(const store::ControlSweep& write) {
    const auto controlled = Do<store::SweepControlled>(write);
    if (controlled.live) scheduler_->SetSweepSettings(controlled.settings);
    world_.Settle();
  }
  void Drain(const std::string& worker, v1::Drain::Mode drain) {
    Do<store::WorkerDrained>(store::DrainWorker{worker, drain});
    scheduler_->Drain(worker, drain);
    world_.Settle();
  }
  void Restart() {
    world_.steps.clear();
    world_.timed.clear();
    MakeScheduler();
    Recover();
  }
};

TEST_F(ControlTest, APausedSweepWaitsAndSaysSo) {
  const std::int64_t sweep = Submit("s", 3);
  const auto link = Connect("w", 1);
  Control({.sweep_id = sweep, .paused = true});
  Succeed(link->assignments[0]);
  EXPECT_THAT(link->assignments, SizeIs(1));
  EXPECT_EQ(scheduler_->WaitingReason(sweep), "paused");
  const std::int64_t other = Submit("other", 1);
  EXPECT_THAT(link->assignments, SizeIs(2));
  EXPECT_EQ(scheduler_->WaitingReason(other), "");
  const std::int64_t third = Submit("third", 1);
  EXPECT_EQ(scheduler_->WaitingReason(third), "the only connected slot is busy with another sweep");
  Control({.sweep_id = third, .paused = true});
  Succeed(link->assignments[1]);
  Restart();
  const auto again = Connect("w", 1);
  EXPECT_THAT(again->assignments, IsEmpty());
  EXPECT_EQ(scheduler_->WaitingReason(sweep), "paused");
  Control({.sweep_id = sweep, .paused = false});
  EXPECT_THAT(again->assignments, SizeIs(1));
}

TEST_F(ControlTest, AJobThatWasPlannedWhenItsSweepWasPausedWaitsToo) {
  const std::int64_t sweep = Submit("s", 1);
  Do<store::SweepControlled>(store::ControlSweep{.sweep_id = sweep, .paused = true});
  const auto link = Connect("w", 1);  // the scheduler plans before it hears of the pause
  EXPECT_THAT(link->assignments, IsEmpty());
  EXPECT_EQ(Text("SELECT count(*) FROM attempts"), "0");
  Control({.sweep_id = sweep, .paused = true});
  Control({.sweep_id = sweep, .paused = false});
  world_.Advance(absl::Seconds(1));
  EXPECT_THAT(link->assignments, SizeIs(1)) << "it is not forgotten";
}

TEST_F(ControlTest, APriorityChangesTheOrderOfWhatWaits) {
  Submit("first", 2);
  const std::int64_t second = Submit("second", 2);
  Control({.sweep_id = second, .priority = 5});
  const auto link = Connect("w", 2);
  ASSERT_THAT(link->assignments, SizeIs(2));
  EXPECT_THAT((std::vector{link->assignments[0].job_id, link->assignments[1].job_id}),
              ElementsAre(3, 4));
  Control({.sweep_id = second, .priority = -5});
  Restart();
  EXPECT_EQ(scheduler_->WaitingReason(second), "");
}

TEST_F(ControlTest, AFailedJobKeepsItsPlaceInAllItsSweepsThroughItsBackOff) {
  const std::int64_t first = Submit("s", 1);
  const auto link = Connect("w", 1);
  Fail(link->assignments[0]);
  // While the job waits, another sweep claims it and its own sweep is paused.
  const auto stored = Do<store::SweepStored>(
      store::SubmitSweep{.name = "t", .client_token = "t", .analyses_json = "[]", .cells = 1});
  store::ExpandSlice slice{.sweep_id = stored.sweep_id, .from = 0, .next = 1, .last = true};
  slice.cells.push_back(
      {.key = "s0", .spec_json = "{}", .requirement = {.pe = "rope"}, .epochs = 1});
  scheduler_->Expanded(Do<store::SliceStored>(slice));
  Control({.sweep_id = first, .paused = true});
  world_.Advance(absl::Seconds(2));
  EXPECT_THAT(link->assignments, SizeIs(2));
}

TEST_F(ControlTest, ADrainingWorkerGetsNoMoreUntilItResumes) {
  Submit("s", 4);
  const auto link = Connect("w", 2);
  ASSERT_THAT(link->assignments, SizeIs(2));
  Drain("w", v1::Drain::FINISH);
  EXPECT_THAT(link->drains, ElementsAre(v1::Drain::FINISH));
  Succeed(link->assignments[0]);
  Succeed(link->assignments[1]);
  EXPECT_THAT(link->assignments, SizeIs(2));
  EXPECT_EQ(scheduler_->WaitingReason(1), "every connected worker drains");
  Restart();
  const auto again = Connect("w", 2);
  EXPECT_THAT(again->drains, ElementsAre(v1::Drain::FINISH)) << "its hello found it so";
  EXPECT_THAT(again->assignments, IsEmpty());
  Drain("w", v1::Drain::RESUME);
  EXPECT_THAT(again->drains, ElementsAre(v1::Drain::FINISH, v1::Drain::RESUME));
  EXPECT_THAT(again->assignments, SizeIs(2));
}

TEST_F(ControlTest, AWorkerThatWasAskedToGiveJobsBackTakesThemWhenItResumes) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  Say(link->assignments[0], 1, StartedEvent(0, 1));
  Drain("w", v1::Drain::CHECKPOINT);
  Say(link->assignments[0], 2, EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED));
  EXPECT_THAT(link->assignments, SizeIs(1));
  Drain("w", v1::Drain::RESUME);
  EXPECT_THAT(link->assignments, SizeIs(2));
}

// The worker's refusal arrives after the drain has ended, on the same connection.
TEST_F(ControlTest, WhatIsRefusedInAShortDrainIsGivenAgain) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  ASSERT_THAT(link->assignments, SizeIs(1));
  Drain("w", v1::Drain::FINISH);
  Drain("w", v1::Drain::RESUME);
  Say(link->assignments[0], 1, EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED));
  EXPECT_THAT(link->assignments, SizeIs(2));
}

TEST_F(ControlTest, AnAssignmentThatCrossedTheDrainMayComeBack) {
  Submit("s", 1);
  auto link = std::make_shared<Link>();
  Do<store::WorkerStored>(store::WorkerHello{.worker_id = "w", .slots_json = "[]"});
  WorkerInfo info{.worker_id = "w", .slots = {{0, "cpu", "cpu", 0}}};
  scheduler_->Connected(info, link, {});
  while (world_.commits.empty()) {  // until its plan waits to be stored
    ASSERT_FALSE(world_.steps.empty());
    auto step = std::move(world_.steps.front());
    world_.steps.pop_front();
    step();
  }
  scheduler_->Drain("w", v1::Drain::KILL);
  world_.Settle();
  ASSERT_THAT(link->assignments, SizeIs(1));
  EXPECT_THAT(link->drains, ElementsAre(v1::Drain::KILL));
  // The draining worker refuses it.
  Say(link->assignments[0], 1, EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED));
  Drain("w", v1::Drain::RESUME);
  EXPECT_THAT(link->assignments, SizeIs(2));
}

TEST_F(ControlTest, ACancelThatGoesOnInSlicesStartsNothingMeanwhile) {
  const std::int64_t sweep = Submit("s", 500);
  const auto first = Do<store::Cancelled>(store::CancelSweep{sweep, 1});
  ASSERT_TRUE(first.more);
  scheduler_->Cancelled(first);
  const auto link = Connect("w", 4);
  EXPECT_THAT(link->assignments, IsEmpty());
  store::Cancelled part = first;
  while (part.more) {
    part = Do<store::Cancelled>(store::DropSlice{sweep, 1});
    scheduler_->Cancelled(part);
    world_.Settle();
  }
  EXPECT_THAT(link->assignments, IsEmpty());
  Submit("next", 1);
  EXPECT_THAT(link->assignments, SizeIs(1));
}

TEST_F(ControlTest, AJobOfACancelledSweepStillRunsForAnother) {
  const std::int64_t first = Submit("s", 2, 9);
  const auto stored = Do<store::SweepStored>(
      store::SubmitSweep{.name = "t", .client_token = "t", .analyses_json = "[]", .cells = 1});
  store::ExpandSlice slice{.sweep_id = stored.sweep_id, .from = 0, .next = 1, .last = true};
  slice.cells.push_back(
      {.key = "s1", .spec_json = "{}", .requirement = {.pe = "rope"}, .epochs = 1});
  scheduler_->Expanded(Do<store::SliceStored>(slice));
  scheduler_->Cancelled(Do<store::Cancelled>(store::CancelSweep{first, 1}));
  const auto link = Connect("w", 2);
  ASSERT_THAT(link->assignments, SizeIs(1));
  EXPECT_EQ(link->assignments[0].job_id, 2);
}

}  // namespace
}  // namespace pelab::sched
