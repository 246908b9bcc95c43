// Slots whose trainers take several jobs of one configuration at a time.
#include <set>

#include "tests/unit/server/sched/scheduler_fixture.h"

namespace pelab::sched {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class PacksTest : public SchedulerTest {
 protected:
  std::string ConfigurationOf(const store::Assignment& a) {
    return Text(absl::StrCat("SELECT configuration_id FROM jobs WHERE job_id = ", a.job_id));
  }
  using Jobs = std::vector<std::size_t>;
};

TEST_F(PacksTest, JobsOfOneConfigurationGoTogether) {
  SubmitSeeds("s", 2, 5);
  const auto link = ConnectPacking("w", 1, 8);
  ASSERT_THAT(link->packs, SizeIs(1));
  ASSERT_THAT(link->packs[0], SizeIs(5)) << "not the five of the other configuration";
  std::set<std::int64_t> seeds;
  for (const store::Assignment& a : link->packs[0]) {
    EXPECT_EQ(ConfigurationOf(a), ConfigurationOf(link->packs[0][0]));
    EXPECT_EQ(a.slot, 0);
    seeds.insert(a.seed);
  }
  EXPECT_THAT(seeds, SizeIs(5));
  EXPECT_THAT(link->assignments, SizeIs(5)) << "each once";
}

TEST_F(PacksTest, ASlotTakesNoMoreThanItSays) {
  SubmitSeeds("s", 1, 10);
  const auto link = ConnectPacking("w", 1, 4);
  ASSERT_EQ(link->sizes, Jobs({4}));
  // The slot is free once all of them have ended, in whatever way.
  Succeed(link->assignments[0]);
  Say(link->assignments[1], 1, EndEvent(v1::ATTEMPT_OUTCOME_CANCELLED));
  Fail(link->assignments[2], state::ErrorKind::kNonFiniteLoss);
  EXPECT_THAT(link->assignments, SizeIs(4));
  Succeed(link->assignments[3]);
  EXPECT_EQ(link->sizes, Jobs({4, 4}));
}

TEST_F(PacksTest, WhatAWorkerFoundBetterAloneComesToItSingly) {
  SubmitSeeds("s", 2, 6);
  const auto link = ConnectPacking("w", 1, 3);
  ASSERT_EQ(link->sizes, Jobs({3}));
  v1::Event hello = StartedEvent(0, 1, "{}", store::Execution{1, 0, 1});
  hello.mutable_started()->set_better_alone(true);
  Say(link->assignments[0], 1, hello);
  Say(link->assignments[0], 2, FailedEvent(state::ErrorKind::kNonFiniteLoss, "it broke"));
  // The first pack runs on. Later jobs of this configuration come to this worker one at a time.
  Succeed(link->assignments[1]);
  Succeed(link->assignments[2]);
  EXPECT_EQ(link->sizes, Jobs({3, 1}));
  EXPECT_EQ(ConfigurationOf(link->assignments[3]), ConfigurationOf(link->assignments[0]));
  for (int i = 3; i < 6; ++i) Succeed(link->assignments[i]);
  EXPECT_EQ(link->sizes, Jobs({3, 1, 1, 1, 3})) << "another configuration is another matter";
  // Other workers still get packs.
  SubmitSeeds("t", 1, 6);
  const auto other = ConnectPacking("other", 1, 3);
  EXPECT_EQ(other->sizes, Jobs({3}));
}

TEST_F(PacksTest, AWorkerThatTakesOneGetsPlainAssignments) {
  SubmitSeeds("s", 1, 6);
  const auto link = ConnectPacking("w", 2, 1);
  EXPECT_THAT(link->assignments, SizeIs(2));
  EXPECT_TRUE(link->packs.empty());
}

TEST_F(PacksTest, ASingleJobIsAPlainAssignment) {
  SubmitSeeds("s", 3, 1);
  const auto link = ConnectPacking("w", 1, 8);
  EXPECT_THAT(link->assignments, SizeIs(1));
  EXPECT_TRUE(link->packs.empty());
}

TEST_F(PacksTest, APackLeavesNoFreeSlotWithoutWork) {
  SubmitSeeds("s", 1, 9);
  const auto link = ConnectPacking("w", 4, 8);
  std::map<int, int> by_slot;
  for (const store::Assignment& a : link->assignments) by_slot[a.slot] += 1;
  EXPECT_EQ(by_slot, (std::map<int, int>{{0, 3}, {1, 2}, {2, 2}, {3, 2}}));
}

TEST_F(PacksTest, SlotsOfOtherWorkersGetTheirShare) {
  std::vector<std::shared_ptr<Link>> links;
  for (const char* id : {"a", "b", "c"}) links.push_back(ConnectPacking(id, 1, 8));
  SubmitSeeds("s", 1, 4);
  EXPECT_EQ(links[0]->sizes, Jobs({2}));
  EXPECT_EQ(links[1]->sizes, Jobs({1}));
  EXPECT_EQ(links[2]->sizes, Jobs({1}));
}

TEST_F(PacksTest, SlotsThatCannotRunThemNeedNoShare) {
  const auto cpus = ConnectPacking("cpus", 8, 1);
  const auto gpu = ConnectPacking("gpu", 1, 8, {}, "gpu");
  SubmitSeeds("s", 1, 6, 0, "gpu");
  EXPECT_EQ(gpu->sizes, Jobs({6}));
  EXPECT_TRUE(cpus->assignments.empty());
}

TEST_F(PacksTest, JobsThatThisSlotCannotRunAreNoReasonForALargerPack) {
  Submit("other", 50, 0, "cpu");  // for which there is no worker
  const auto first = ConnectPacking("a", 1, 8, {}, "gpu");
  const auto second = ConnectPacking("b", 1, 8, {}, "gpu");
  SubmitSeeds("s", 1, 4, 0, "gpu");
  EXPECT_EQ(first->sizes, Jobs({2}));
  EXPECT_EQ(second->sizes, Jobs({2}));
}

TEST_F(PacksTest, NorArePausedOnes) {
  const std::int64_t paused = SubmitSeeds("paused", 1, 50);
  scheduler_->SetSweepSettings({.sweep_id = paused, .paused = true});
  const auto first = ConnectPacking("a", 1, 8);
  const auto second = ConnectPacking("b", 1, 8);
  SubmitSeeds("s", 1, 4);
  EXPECT_EQ(first->sizes, Jobs({2}));
  EXPECT_EQ(second->sizes, Jobs({2}));
}

TEST_F(PacksTest, EveryJobCountsForItsSweepsShare) {
  SubmitSeeds("large", 1, 16);
  SubmitSeeds("small", 1, 4);
  const auto link = ConnectPacking("w", 2, 4);
  ASSERT_EQ(link->sizes, Jobs({4, 4}));
  EXPECT_NE(ConfigurationOf(link->packs[0][0]), ConfigurationOf(link->packs[1][0]));
  // The next pack goes to the sweep that has fewer running jobs.
  for (const store::Assignment& a : link->packs[1]) Succeed(a);
  ASSERT_THAT(link->packs, SizeIs(3));
  EXPECT_EQ(ConfigurationOf(link->packs[2][0]), ConfigurationOf(link->packs[0][0]));
}

TEST_F(PacksTest, WhatIsRefusedWhenItIsStoredIsLeftOut) {
  // Nothing is stored while the disk hangs; meanwhile one of the jobs is cancelled.
  const auto link = ConnectPacking("w", 1, 8);
  world_.disk_hangs = true;
  SubmitSeeds("s", 1, 3);
  const std::int64_t second = 2;
  scheduler_->Cancelled(Do<store::Cancelled>(store::CancelJob{second, 1}));
  world_.disk_hangs = false;
  world_.Settle();
  EXPECT_EQ(link->sizes, Jobs({2}));
  for (const store::Assignment& a : link->assignments) EXPECT_NE(a.job_id, second);
  for (const store::Assignment& a : std::vector(link->assignments)) Succeed(a);
  SubmitSeeds("next", 1, 2);
  EXPECT_EQ(link->sizes, Jobs({2, 2})) << "the slot is free again";
}

TEST_F(PacksTest, OneThatIsLeftAloneGoesAlone) {
  const auto link = ConnectPacking("w", 1, 8);
  world_.disk_hangs = true;
  SubmitSeeds("s", 1, 2);
  scheduler_->Cancelled(Do<store::Cancelled>(store::CancelJob{1, 1}));
  world_.disk_hangs = false;
  world_.Settle();
  EXPECT_TRUE(link->packs.empty());
  ASSERT_THAT(link->assignments, SizeIs(1));
  EXPECT_EQ(link->assignments[0].job_id, 2);
}

TEST_F(PacksTest, APackWaitsForRoomOnTheDiskAsAJobDoes) {
  SubmitSeeds("s", 1, 3);
  world_.disk_full = true;
  const auto link = ConnectPacking("w", 1, 8);
  EXPECT_TRUE(link->assignments.empty());
  world_.disk_full = false;
  world_.Advance(absl::Seconds(2));
  EXPECT_THAT(link->assignments, SizeIs(3));
}

TEST_F(PacksTest, ReconnectingSendsWhatIsNotHeldOneByOne) {
  SubmitSeeds("s", 1, 4);
  const auto first = ConnectPacking("w", 1, 4);
  ASSERT_EQ(first->sizes, Jobs({4}));
  Say(first->assignments[0], 1, StartedEvent(0, 1));
  const auto second = ConnectPacking("w", 1, 4, {Holding(first->assignments[0])});
  EXPECT_TRUE(second->packs.empty());
  EXPECT_THAT(second->assignments, SizeIs(3));
  SubmitSeeds("next", 1, 1);
  // Not before all four have ended.
  Say(first->assignments[0], 2, OneWrong());
  Say(first->assignments[0], 3, SucceededEvent());
  for (int i = 1; i < 3; ++i) Succeed(first->assignments[i]);
  EXPECT_THAT(second->assignments, SizeIs(3));
  Succeed(first->assignments[3]);
  EXPECT_THAT(second->assignments, SizeIs(4));
}

// Without --packing, the jobs of a pack train one after another.
TEST_F(PacksTest, AMemberThatWaitsForAnotherIsNotSilent) {
  longest_silence_ = absl::Minutes(10);
  world_.steps.clear();
  world_.timed.clear();
  MakeScheduler();
  SubmitSeeds("s", 1, 2);
  const auto link = ConnectPacking("w", 1, 2);
  const std::vector<store::Assignment> pack = link->packs.at(0);
  const auto pass = [&](int minutes) {
    for (int i = 0; i < 4 * minutes; ++i) {
      world_.Advance(absl::Seconds(15));
      scheduler_->Heartbeat("w", link.get(), {Holding(pack[0]), Holding(pack[1])});
      world_.Settle();
    }
  };
  pass(9);
  Say(pack[0], 1, StartedEvent(0, 1));
  pass(9);
  EXPECT_EQ(Text("SELECT count(*) FROM attempts WHERE outcome IS NULL"), "2");
  pass(2);
  EXPECT_EQ(Text("SELECT count(*) FROM attempts WHERE outcome = 'lost' AND attempt_id <= 2"), "2")
      << "now both are";
}

TEST_F(PacksTest, AfterARestartTheSlotIsBusyUntilAllHaveEnded) {
  SubmitSeeds("s", 1, 3);
  const auto before = ConnectPacking("w", 1, 2);
  const std::vector<store::Assignment> pack = before->packs.at(0);
  for (const store::Assignment& a : pack) Say(a, 1, StartedEvent(0, 1));
  world_.steps.clear();
  world_.timed.clear();
  MakeScheduler();
  Recover();
  const auto after = ConnectPacking("w", 1, 2, {Holding(pack[0]), Holding(pack[1])});
  EXPECT_TRUE(after->assignments.empty());
  const auto end = [&](const store::Assignment& a) {
    Say(a, 2, OneWrong());
    Say(a, 3, SucceededEvent());
  };
  end(pack[0]);
  EXPECT_TRUE(after->assignments.empty());
  end(pack[1]);
  EXPECT_THAT(after->assignments, SizeIs(1));
}

TEST_F(PacksTest, ALostPackFreesItsSlotOnce) {
  SubmitSeeds("s", 1, 3);
  const auto silent = ConnectPacking("w", 1, 8);
  ASSERT_EQ(silent->sizes, Jobs({3}));
  world_.Advance(absl::Seconds(21));
  EXPECT_EQ(Text("SELECT group_concat(outcome) FROM attempts"), "lost,lost,lost");
  const auto back = ConnectPacking("w", 1, 8);
  EXPECT_EQ(back->sizes, Jobs({3})) << "they go together again";
}

TEST_F(PacksTest, AFailedJobIsTriedByItself) {
  SubmitSeeds("s", 1, 3);
  const auto link = ConnectPacking("w", 1, 8);
  for (const store::Assignment& a : std::vector(link->assignments)) Fail(a);
  world_.Advance(absl::Seconds(2));
  EXPECT_THAT(link->packs, SizeIs(1)) << "what ended the trainer ends no others a second time";
  EXPECT_THAT(link->assignments, SizeIs(4));
}

TEST_F(PacksTest, OneTrainerThatDiesIsOneFailureOfItsWorker) {
  SubmitSeeds("a", 1, 4);
  const auto bad = ConnectPacking("bad", 1, 4);
  ConnectPacking("good", 1, 4);
  SubmitSeeds("b", 12, 4);
  ASSERT_EQ(bad->sizes, Jobs({4}));
  // Four jobs fail at once, but in one trainer: a worker is avoided only after three failed
  // trainers.
  for (std::size_t dead = 0; dead < 3; ++dead) {
    ASSERT_THAT(bad->packs, SizeIs(dead + 1));
    for (const store::Assignment& a : std::vector(bad->packs[dead])) Fail(a);
  }
  EXPECT_THAT(bad->packs, SizeIs(3));
}

TEST_F(PacksTest, PeopleSeeEveryJobOfASlot) {
  SubmitSeeds("s", 1, 3);
  ConnectPacking("w", 2, 8);
  const auto workers = scheduler_->Workers();
  ASSERT_THAT(workers, SizeIs(1));
  ASSERT_THAT(workers[0].leases, SizeIs(3));
  EXPECT_EQ(Text("SELECT busy_slots FROM v_workers"), "2");
  const auto drained = Do<store::WorkerDrained>(store::DrainWorker{"w", v1::Drain::FINISH});
  EXPECT_EQ(drained.busy_slots, 2);
  EXPECT_EQ(drained.attempts, 3);
}

}  // namespace
}  // namespace pelab::sched
