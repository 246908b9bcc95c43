#include "worker/scale/allocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::scale {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr absl::Duration kNow = absl::Hours(5);

std::vector<Sighting> One(const std::string& id, const std::string& state) {
  return {{id, state, "why"}};
}

TEST(AllocationsTest, EveryStateOfSlurm) {
  for (const char* state :
       {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}) {
    EXPECT_TRUE(PhaseOf(state).known && PhaseOf(state).phase == Phase::kWaiting) << state;
  }
  for (const char* state :
       {"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT"}) {
    EXPECT_TRUE(PhaseOf(state).known && PhaseOf(state).phase == Phase::kStarting) << state;
  }
  EXPECT_EQ(PhaseOf("COMPLETING").phase, Phase::kEnding);
  for (const char* state : {"COMPLETED", "TIMEOUT", "PREEMPTED", "CANCELLED", "NODE_FAIL",
                            "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "FAILED", "REVOKED"}) {
    EXPECT_TRUE(PhaseOf(state).known && PhaseOf(state).phase == Phase::kOver) << state;
  }
  for (const char* state : {"", "running", "POWERING_UP", "RUNNING "}) {
    EXPECT_FALSE(PhaseOf(state).known) << state;
  }
}

TEST(AllocationsTest, FromSubmissionToTheEnd) {
  Allocations all;
  all.Submitted("7");
  EXPECT_EQ(all.Count(Phase::kWaiting), 1);
  EXPECT_THAT(all.See(One("7", "PENDING"), kNow), IsEmpty());
  EXPECT_EQ(all.all().at("7").reason, "why");
  EXPECT_THAT(all.See(One("7", "RUNNING"), kNow), IsEmpty());
  EXPECT_EQ(all.Count(Phase::kStarting), 1);
  all.SaidHello({"7", "8"});
  EXPECT_EQ(all.Count(Phase::kRunning), 1);
  EXPECT_THAT(all.See(One("7", "RUNNING"), kNow), IsEmpty());
  EXPECT_EQ(all.Count(Phase::kRunning), 1);
  EXPECT_THAT(all.See(One("7", "COMPLETING"), kNow), IsEmpty());
  EXPECT_EQ(all.Count(Phase::kEnding), 1);
  EXPECT_EQ(all.active(), 1);
  const auto ended = all.See(One("7", "COMPLETED"), kNow);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].id, "7");
  EXPECT_EQ(ended[0].state, "COMPLETED");
  EXPECT_TRUE(ended[0].said_hello);
  EXPECT_EQ(all.active(), 0);
  // It stays in the list for some minutes.
  EXPECT_THAT(all.See(One("7", "COMPLETED"), kNow), IsEmpty());
  EXPECT_EQ(all.active(), 0);
}

TEST(AllocationsTest, WhatRunsAlreadyIsTakenOver) {
  Allocations all;
  all.See({{"1", "RUNNING", ""}, {"2", "PENDING", ""}, {"3", "FAILED", ""}}, kNow);
  EXPECT_EQ(all.active(), 2);
}

TEST(AllocationsTest, AbsentTwiceIsOver) {
  Allocations all;
  all.See(One("7", "RUNNING"), kNow);
  EXPECT_THAT(all.See({}, kNow), IsEmpty());
  EXPECT_THAT(all.See(One("7", "RUNNING"), kNow), IsEmpty()) << "it was there after all";
  EXPECT_THAT(all.See({}, kNow), IsEmpty());
  const auto ended = all.See({}, kNow);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].state, "RUNNING");
  EXPECT_FALSE(ended[0].said_hello);
}

TEST(AllocationsTest, AnUnknownStateChangesNothingForAWhile) {
  Allocations all;
  all.See(One("7", "RUNNING"), kNow);
  for (int i = 0; i < 19; ++i) {
    ASSERT_THAT(all.See(One("7", "DREAMING"), kNow), IsEmpty());
    ASSERT_EQ(all.Count(Phase::kStarting), 1);
  }
  EXPECT_THAT(all.See(One("7", "RUNNING"), kNow), IsEmpty());
  for (int i = 0; i < 19; ++i) ASSERT_THAT(all.See(One("7", "DREAMING"), kNow), IsEmpty());
  EXPECT_THAT(all.See(One("7", "DREAMING"), kNow), SizeIs(1));
}

TEST(AllocationsTest, AWorkerThatDoesNotConnectIsLate) {
  Allocations all;
  all.See({{"1", "RUNNING", ""}, {"2", "RUNNING", ""}, {"3", "PENDING", ""}}, kNow);
  all.SaidHello({"2"});
  const absl::Duration later = kNow + absl::Minutes(10);
  all.See({{"1", "RUNNING", ""}, {"2", "RUNNING", ""}, {"3", "RUNNING", ""}}, later);
  EXPECT_THAT(all.Late(later - absl::Seconds(1), absl::Minutes(10)), IsEmpty());
  EXPECT_THAT(all.Late(later, absl::Minutes(10)), ElementsAre("1"));
}

}  // namespace
}  // namespace pelab::scale
