// What the scaler reports to the coordinator, and takes from it.
#include "tests/unit/worker/scale/scaler_fixture.h"

namespace pelab::scale {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ReportsTest : public ScalerTest {
 protected:
  ReportsTest() {
    coordinator_.given = {{.queue = Named("a")}};
    scaler_.emplace(&batch_, &coordinator_, &spans_);
  }
  // As the program's loop does.
  void Round() {
    ASSERT_THAT(scaler_->Report(), IsOk());
    Look();
    Step();
  }
};

TEST_F(ReportsTest, TheQueuesAreTheCoordinators) {
  coordinator_.given.clear();
  coordinator_.demand = {.waiting_jobs = 1};
  Round();
  EXPECT_THAT(scaler_->queues(), IsEmpty());
  coordinator_.given = {{.queue = Named("a")}, {.queue = Named("b")}};
  ASSERT_THAT(scaler_->Report(), IsOk());
  EXPECT_TRUE(scaler_->wants_look());
  EXPECT_THAT(coordinator_.reported, IsEmpty()) << "nothing is known of them yet";
  Step();
  EXPECT_EQ(batch_.last, 0) << "nor is anything submitted to them";
  Look();
  EXPECT_FALSE(scaler_->wants_look());
  Step();
  EXPECT_EQ(batch_.last, 1);
  ASSERT_THAT(scaler_->Report(), IsOk());
  EXPECT_THAT(coordinator_.reported, ElementsAre("a: 1", "b: 0"));
  coordinator_.given.erase(coordinator_.given.begin());
  ASSERT_THAT(scaler_->Report(), IsOk());
  ASSERT_THAT(scaler_->queues(), SizeIs(1));
  EXPECT_EQ(First().queue.name, "b");
}

TEST_F(ReportsTest, NewSettingsKeepTheAllocations) {
  coordinator_.demand = {.waiting_jobs = 9};
  Round();
  EXPECT_EQ(batch_.last, 2);
  coordinator_.given[0].queue.max_waiting = 3;
  Round();
  EXPECT_EQ(batch_.last, 3);
  EXPECT_EQ(First().allocations.active(), 3);
}

TEST_F(ReportsTest, NothingIsSubmittedToAPausedQueue) {
  coordinator_.demand = {.waiting_jobs = 1};
  coordinator_.given[0].paused = "maintenance";
  Round();
  EXPECT_EQ(batch_.last, 0);
  const Scaler::Wish wish = scaler_->WishOf(First()).value();
  EXPECT_EQ(wish.wanted, 1);
  EXPECT_EQ(wish.now, 0);
  coordinator_.given[0].paused.clear();
  Round();
  EXPECT_EQ(batch_.last, 1);
}

// The coordinator keeps the pause, so that a new scaler has it too, and a person can end it.
TEST_F(ReportsTest, APauseAfterFailuresBecomesTheCoordinators) {
  coordinator_.demand = {.waiting_jobs = 1};
  for (const char* id : {"1", "2", "3"}) {
    Round();
    batch_.Set(id, "FAILED");
    Look();
  }
  Round();
  EXPECT_THAT(coordinator_.given[0].paused, HasSubstr("the workers of 3 allocations in a row"));
  EXPECT_EQ(First().paused, coordinator_.given[0].paused);
  EXPECT_EQ(batch_.last, 3);
  scaler_.emplace(&batch_, &coordinator_, &spans_);
  Round();
  EXPECT_EQ(batch_.last, 3) << "a new one does not forget it";
  coordinator_.given[0].paused.clear();
  Round();
  EXPECT_EQ(batch_.last, 4);
  EXPECT_EQ(coordinator_.given[0].paused, "") << "nor is it reported again";
}

TEST_F(ReportsTest, WithoutTheCoordinatorAPauseHoldsAllTheSame) {
  coordinator_.demand = {.waiting_jobs = 1};
  for (const char* id : {"1", "2", "3"}) {
    Round();
    batch_.Set(id, "FAILED");
    Look();
  }
  coordinator_.away = "no coordinator";
  EXPECT_FALSE(scaler_->Report().ok());
  coordinator_.away.clear();
  Step();
  EXPECT_EQ(batch_.last, 3);
}

TEST_F(ReportsTest, WhatWaitsIsCancelledBeforeAQueueGoes) {
  coordinator_.demand = {.waiting_jobs = 9};
  Round();
  Start("1");
  coordinator_.given[0].removing = true;
  Round();
  Round();
  EXPECT_THAT(batch_.cancelled, ElementsAre("2")) << "once, and only the one that waits";
  EXPECT_EQ(batch_.last, 2);
}

TEST_F(ReportsTest, AWorkerWhoseAllocationIsOverIsReportedOnce) {
  coordinator_.demand = {.waiting_jobs = 1};
  Round();
  Start("1");
  EXPECT_THAT(coordinator_.gone, IsEmpty());
  batch_.Set("1", "NODE_FAIL");
  Look();
  EXPECT_THAT(coordinator_.gone, ElementsAre("pelab-a-1: allocation 1 is over: NODE_FAIL"));
  Look();
  EXPECT_THAT(coordinator_.gone, SizeIs(1)) << "it may have come back";
}

TEST_F(ReportsTest, AWorkerThatSaidGoodbyeIsNotReported) {
  Round();
  coordinator_.workers["pelab-a-1"] = false;
  batch_.listed["a"] = {{"1", "COMPLETED", ""}};
  Look();
  EXPECT_THAT(coordinator_.gone, IsEmpty());
}

// One that ended while no scaler ran, and one that squeue has forgotten.
TEST_F(ReportsTest, OthersThatAreOverAreReportedToo) {
  Round();
  coordinator_.workers["pelab-a-7"] = true;
  batch_.listed["a"] = {{"7", "PREEMPTED", ""}, {"8", "RUNNING", ""}};
  Start("8");
  EXPECT_THAT(coordinator_.gone, ElementsAre("pelab-a-7: allocation 7 is over: PREEMPTED"));
  batch_.listed.clear();
  Look();
  EXPECT_THAT(coordinator_.gone, SizeIs(1));
  Look();
  EXPECT_THAT(coordinator_.gone, ElementsAre(HasSubstr("-7"), HasSubstr("-8")));
}

TEST_F(ReportsTest, ACoordinatorThatDoesNotAnswerIsToldLater) {
  Round();
  coordinator_.refuses_gone = absl::UnavailableError("busy");
  batch_.listed["a"] = {{"1", "RUNNING", ""}};
  Start("1");
  batch_.listed.clear();
  Look();
  Look();
  EXPECT_THAT(coordinator_.gone, IsEmpty());
  coordinator_.refuses_gone = absl::OkStatus();
  Look();
  EXPECT_THAT(coordinator_.gone, SizeIs(1));
}

TEST_F(ReportsTest, AReaderMayNotTellAndStopsTrying) {
  Round();
  coordinator_.refuses_gone = absl::PermissionDeniedError("scale is a reader");
  batch_.listed["a"] = {{"1", "RUNNING", ""}};
  Start("1");
  batch_.Set("1", "NODE_FAIL");
  Look();
  coordinator_.refuses_gone = absl::OkStatus();
  Look();
  EXPECT_THAT(coordinator_.gone, IsEmpty());
}

}  // namespace
}  // namespace pelab::scale
