// The scaler with queues of its own.
#include "worker/scale/scaler.h"

#include "tests/unit/worker/scale/scaler_fixture.h"

namespace pelab::scale {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(WantedTest, EnoughSlotsForTheJobsThatWait) {
  const auto wanted = [](int jobs, int free, int coming, int slots = 1, int pack = 1) {
    const Queue queue{.max_allocations = 100, .slots = slots, .pack = pack};
    return Wanted(queue, {.waiting_jobs = jobs, .free_slots = free}, coming);
  };
  EXPECT_EQ(wanted(0, 0, 0), 0);
  EXPECT_EQ(wanted(5, 0, 0), 5);
  EXPECT_EQ(wanted(5, 2, 1), 2);
  EXPECT_EQ(wanted(5, 9, 0), 0);
  EXPECT_EQ(wanted(9, 0, 0, 4), 3);
  EXPECT_EQ(wanted(9, 0, 4, 4), 2);
  EXPECT_EQ(wanted(17, 0, 0, 1, 8), 3);
  EXPECT_EQ(wanted(17, 1, 0, 2, 8), 1);
  EXPECT_EQ(wanted(1'000'000, 0, 0), 100);
}

TEST_F(ScalerTest, FromNoneToSomeToNone) {
  Begin({Named("a")});
  Step();
  EXPECT_EQ(batch_.last, 0) << "no job waits";
  coordinator_.demand = {.waiting_jobs = 5};
  Step();
  EXPECT_EQ(batch_.last, 2) << "max_waiting";
  Step();
  EXPECT_EQ(batch_.last, 2) << "they wait still";
  Look();
  Start("1");
  Start("2");
  coordinator_.demand = {.waiting_jobs = 3};
  Step();
  EXPECT_EQ(batch_.last, 4);
  EXPECT_EQ(First().allocations.Count(Phase::kRunning), 2);
  coordinator_.demand = {};
  for (const char* id : {"1", "2", "3", "4"}) batch_.Set(id, "COMPLETED");
  Look();
  EXPECT_EQ(First().allocations.active(), 0);
  EXPECT_THAT(batch_.cancelled, IsEmpty()) << "workers end by themselves";
}

TEST_F(ScalerTest, NothingIsSubmittedBeforeTheFirstLook) {
  scaler_.emplace(std::vector<Queue>{Named("a")}, &batch_, &coordinator_, &spans_);
  coordinator_.demand = {.waiting_jobs = 5};
  batch_.away = "slurmctld is away";
  EXPECT_THAT(scaler_->Look(now_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("slurmctld is away")));
  Step();
  EXPECT_EQ(batch_.last, 0);
  batch_.away.clear();
  batch_.listed["a"] = {{"91", "RUNNING", ""}, {"92", "PENDING", ""}, {"93", "PENDING", ""}};
  Look();
  Step();
  EXPECT_EQ(batch_.last, 0) << "two wait, which is all that may";
  EXPECT_EQ(First().allocations.active(), 3);
}

TEST_F(ScalerTest, AtMostSoManyAllocations) {
  Begin({Named("a", /*most=*/3, /*waiting=*/100)});
  coordinator_.demand = {.waiting_jobs = 50};
  Step();
  EXPECT_EQ(batch_.last, 3);
  batch_.Set("1", "COMPLETING");
  Look();
  Step();
  EXPECT_EQ(batch_.last, 3) << "one that ends has its place still";
  batch_.Set("1", "TIMEOUT");
  Look();
  Step();
  EXPECT_EQ(batch_.last, 4);
}

TEST_F(ScalerTest, QueuesOfOneDeviceShareTheDemand) {
  Queue cpu = Named("c");
  cpu.device = "cpu";
  Begin({Named("a", 1), Named("b", 8, 8), cpu});
  coordinator_.demand = {.waiting_jobs = 3};
  const Scaler::Wish first = scaler_->WishOf(scaler_->queues()[0]).value();
  EXPECT_EQ(first.coming, 0);
  EXPECT_EQ(first.now, 1) << "what the step submits";
  EXPECT_EQ(scaler_->WishOf(scaler_->queues()[1], /*planned=*/1).value().now, 2);
  Step();
  EXPECT_THAT(batch_.listed["a"], SizeIs(1));
  EXPECT_THAT(batch_.listed["b"], SizeIs(2)) << "what a does not cover";
  EXPECT_THAT(batch_.listed["c"], SizeIs(2)) << "another device, at most two may wait";
}

TEST_F(ScalerTest, AWorkerThatDoesNotConnectLosesItsNode) {
  Begin({Named("a")});
  coordinator_.demand = {.waiting_jobs = 1};
  Step();
  batch_.Set("1", "RUNNING");
  Look();
  now_ += absl::Minutes(9);
  Look();
  EXPECT_THAT(batch_.cancelled, IsEmpty());
  now_ += absl::Minutes(1);
  Look();
  EXPECT_THAT(batch_.cancelled, ElementsAre("1"));
}

TEST_F(ScalerTest, WhileTheCoordinatorIsAwayNobodyIsLate) {
  Begin({Named("a")});
  coordinator_.demand = {.waiting_jobs = 1};
  Step();
  batch_.Set("1", "RUNNING");
  Look();
  coordinator_.away = "no coordinator";
  now_ += absl::Hours(1);
  EXPECT_FALSE(scaler_->Look(now_).ok());
  EXPECT_FALSE(scaler_->Step(now_).ok());
  EXPECT_THAT(batch_.cancelled, IsEmpty());
  EXPECT_EQ(batch_.last, 1);
}

TEST_F(ScalerTest, RefusedSubmissionsAreNotRepeatedAtOnce) {
  Begin({Named("a")});
  coordinator_.demand = {.waiting_jobs = 1};
  batch_.refuses = "invalid partition";
  Step();
  Step();
  EXPECT_THAT(First().throttle.WhyNot(now_), HasSubstr("tried again in 1m"));
  batch_.refuses.clear();
  Step();
  EXPECT_EQ(batch_.last, 0);
  now_ += absl::Minutes(1);
  Step();
  EXPECT_EQ(batch_.last, 1);
}

TEST_F(ScalerTest, PausesIfWorkersNeverConnect) {
  Begin({Named("a")});
  coordinator_.demand = {.waiting_jobs = 1};
  for (const char* id : {"1", "2", "3"}) {
    Step();
    batch_.Set(id, "FAILED");
    Look();
  }
  EXPECT_TRUE(First().throttle.paused());
  Step();
  EXPECT_EQ(batch_.last, 3);
}

TEST_F(ScalerTest, AWorkerThatCameAndWentBetweenTwoLooksSaidHello) {
  Begin({Named("a")});
  coordinator_.demand = {.waiting_jobs = 1};
  for (const char* id : {"1", "2", "3"}) {
    Step();
    batch_.Set(id, "COMPLETED");
    coordinator_.workers[absl::StrCat("pelab-a-", id)] = false;
    Look();
  }
  EXPECT_FALSE(First().throttle.paused());
}

}  // namespace
}  // namespace pelab::scale
