// Shares, limits and budgets of the principals that own sweeps.
#include <algorithm>
#include <set>
#include <variant>

#include "tests/unit/server/sched/scheduler_fixture.h"

namespace pelab::sched {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class PrincipalLimitsTest : public SchedulerTest {
 protected:
  std::int64_t SubmitOf(const std::string& owner, const std::string& name, int jobs,
                        int priority = 0) {
    owner_ = owner;
    return Submit(name, jobs, priority);
  }
  void SetPrincipal(const std::string& name, const Allowance& allowance) {
    scheduler_->SetPrincipal(name, allowance);
    world_.Settle();
  }
  std::shared_ptr<Link> ConnectGpus(const std::string& id, int slots, int pack = 1,
                                    const std::vector<store::Held>& held = {}) {
    return ConnectPacking(id, slots, pack, held, "gpu");
  }
  // The owner of the only sweep of the assignment's job.
  std::string OwnerOf(const store::Assignment& a) {
    return owners_.at(std::stoll(Text(
        absl::StrCat("SELECT CAST(sweep_id AS TEXT) FROM sweep_jobs WHERE job_id = ", a.job_id))));
  }
  std::map<std::string, int> CountByOwner(const std::vector<store::Assignment>& assignments) {
    std::map<std::string, int> counts;
    for (const store::Assignment& a : assignments) counts[OwnerOf(a)] += 1;
    return counts;
  }
  std::string Open() { return Text("SELECT count(*) FROM attempts WHERE outcome IS NULL"); }
  // The assignment succeeds, and its principal is charged.
  void SucceedFor(const store::Assignment& a, double gpu_seconds) {
    Say(a, 1, StartedEvent(0, 1));
    Say(a, 2, OneWrong());
    auto stored = Do<store::EventStored>(EventWrite(a.attempt_id, a.token, 3, SucceededEvent(),
                                                    absl::ToUnixMillis(world_.Wall()), 0.5));
    ASSERT_TRUE(stored.change);
    store::JobChange charged = *stored.change;
    charged.gpu_seconds = gpu_seconds;
    stored.change = std::make_shared<const store::JobChange>(std::move(charged));
    scheduler_->Stored(stored);
    world_.Settle();
  }
  // Time passes while worker `id` holds these assignments.
  void Pass(absl::Duration time, const std::string& id, const std::shared_ptr<Link>& link,
            const std::vector<store::Assignment>& assignments) {
    std::vector<store::Held> held;
    for (const store::Assignment& a : assignments) held.push_back(Holding(a));
    for (absl::Duration passed; passed < time; passed += absl::Seconds(10)) {
      world_.Advance(absl::Seconds(10));
      scheduler_->Heartbeat(id, link.get(), held);
      world_.Settle();
    }
  }
  // The coordinator starts again on the same database, with one principal.
  void Restart(const std::string& name, const Allowance& allowance) {
    world_.steps.clear();
    world_.timed.clear();
    MakeScheduler();
    scheduler_->SetPrincipal(name, allowance);
    Recover();
  }
  // The attempts that wait to be stored.
  std::vector<store::CreateAttempt> Planned() const {
    std::vector<store::CreateAttempt> planned;
    for (const auto& [writes, done] : world_.commits) {
      for (const store::Write& write : writes) {
        if (const auto* create = std::get_if<store::CreateAttempt>(&write)) {
          planned.push_back(*create);
        }
      }
    }
    return planned;
  }
  using Counts = std::map<std::string, int>;
};

TEST_F(PrincipalLimitsTest, SharesDivideTheSlots) {
  SetPrincipal("alice", {.share = 2});
  SetPrincipal("bob", {.share = 1});
  SubmitOf("bob", "b1", 20);
  SubmitOf("bob", "b2", 20);
  SubmitOf("alice", "a", 20);
  const auto link = Connect("w", 9);
  EXPECT_EQ(CountByOwner(link->assignments), (Counts{{"alice", 6}, {"bob", 3}}));
  // Each slot goes to the principal that gave it back.
  for (int i = 0; i < 9; ++i) {
    const store::Assignment ended = link->assignments[i];
    Succeed(ended);
    ASSERT_THAT(link->assignments, SizeIs(10 + i));
    EXPECT_EQ(OwnerOf(link->assignments.back()), OwnerOf(ended)) << i;
  }
}

TEST_F(PrincipalLimitsTest, AnotherShareCountsFromTheNextSlotOn) {
  SubmitOf("alice", "a", 20);
  SubmitOf("bob", "b", 20);
  const auto link = Connect("w", 4);
  ASSERT_EQ(CountByOwner(link->assignments), (Counts{{"alice", 2}, {"bob", 2}}));
  SetPrincipal("alice", {.share = 3});
  for (const store::Assignment& a : std::vector(link->assignments)) Succeed(a);
  const std::vector<store::Assignment> later(link->assignments.begin() + 4,
                                             link->assignments.end());
  EXPECT_EQ(CountByOwner(later), (Counts{{"alice", 3}, {"bob", 1}}));
}

TEST_F(PrincipalLimitsTest, NobodyHasMoreSlotsThanAllowed) {
  SetPrincipal("alice", {.max_slots = 2});
  SubmitOf("alice", "a1", 5, 9);
  SubmitOf("alice", "a2", 5);
  const auto link = Connect("w", 4);
  EXPECT_THAT(link->assignments, SizeIs(2));
  Succeed(link->assignments[0]);
  EXPECT_THAT(link->assignments, SizeIs(3));
  Fail(link->assignments[1]);
  EXPECT_THAT(link->assignments, SizeIs(4));
  world_.Advance(absl::Seconds(5));  // its back-off is over, and it waits too
  EXPECT_EQ(Open(), "2");
  SubmitOf("bob", "b", 5);
  EXPECT_EQ(CountByOwner(link->assignments)["bob"], 2) << "free slots are for others";
}

TEST_F(PrincipalLimitsTest, PlansCountWhileTheyAreStored) {
  SetPrincipal("alice", {.max_slots = 3});
  SubmitOf("alice", "a", 9);
  world_.disk_hangs = true;
  Connect("w1", 2);
  EXPECT_THAT(Planned(), SizeIs(2));
  Connect("w2", 2);
  world_.Advance(absl::Seconds(1));
  EXPECT_THAT(Planned(), SizeIs(3));
  world_.disk_hangs = false;
  world_.Advance(absl::Seconds(1));
  EXPECT_EQ(Open(), "3");
}

TEST_F(PrincipalLimitsTest, ARefusedPlanGivesItsPlaceBack) {
  SetPrincipal("alice", {.max_slots = 2});
  SubmitOf("alice", "a", 4);
  world_.disk_hangs = true;
  const auto link = Connect("w", 4);
  ASSERT_THAT(Planned(), SizeIs(2));
  scheduler_->Cancelled(Do<store::Cancelled>(store::CancelJob{Planned()[0].job_id, 1}));
  world_.disk_hangs = false;
  world_.Settle();
  EXPECT_THAT(link->assignments, SizeIs(2));
  EXPECT_EQ(Open(), "2");
}

TEST_F(PrincipalLimitsTest, APlanThatCouldNotBeStoredGivesItsPlaceBack) {
  SetPrincipal("alice", {.max_slots = 2});
  SubmitOf("alice", "a", 4);
  world_.disk_full = true;
  const auto link = Connect("w", 4);
  world_.Advance(absl::Seconds(5));
  EXPECT_THAT(link->assignments, IsEmpty());
  world_.disk_full = false;
  world_.Advance(absl::Seconds(2));
  EXPECT_THAT(link->assignments, SizeIs(2));
  for (const store::Assignment& a : std::vector(link->assignments)) Succeed(a);
  EXPECT_THAT(link->assignments, SizeIs(4));
}

TEST_F(PrincipalLimitsTest, EveryJobOfAPackNeedsAPlace) {
  SetPrincipal("alice", {.max_slots = 3});
  owner_ = "alice";
  SubmitSeeds("a", 1, 9);
  const auto link = ConnectPacking("w", 1, 8);
  ASSERT_EQ(link->sizes, std::vector<std::size_t>({3}));
  Succeed(link->assignments[0]);
  const auto other = ConnectPacking("other", 1, 8);
  EXPECT_EQ(other->sizes, std::vector<std::size_t>({1})) << "the first slot still holds two";
}

TEST_F(PrincipalLimitsTest, APackIsNoLargerThanALimitThoughManyOthersWait) {
  SetPrincipal("alice", {.max_slots = 3});
  owner_ = "alice";
  SubmitSeeds("a", 1, 9, 9);
  owner_ = "bob";
  SubmitSeeds("b", 1, 50);
  const auto link = ConnectPacking("w", 2, 8);
  EXPECT_EQ(link->sizes, std::vector<std::size_t>({3, 8}));
}

TEST_F(PrincipalLimitsTest, APackWithinALimitLeavesNoFreeSlotWithoutWork) {
  SetPrincipal("alice", {.max_slots = 3});
  owner_ = "alice";
  SubmitSeeds("a", 1, 9);
  const auto link = ConnectPacking("w", 3, 8);
  EXPECT_EQ(link->sizes, std::vector<std::size_t>({1, 1, 1}));
}

TEST_F(PrincipalLimitsTest, JobsThatALimitHoldsAreNoReasonForALargerPack) {
  SetPrincipal("alice", {.max_slots = 1});
  owner_ = "alice";
  SubmitSeeds("held", 1, 50, 9);
  Connect("busy", 1);
  owner_ = "bob";
  SubmitSeeds("b", 1, 4);
  const auto link = ConnectPacking("w", 2, 8);
  EXPECT_EQ(link->sizes, std::vector<std::size_t>({2, 2}));
}

TEST_F(PrincipalLimitsTest, ASpentBudgetStartsNothingAndWhatRunsEnds) {
  SetPrincipal("alice", {.gpu_seconds = 100});
  const std::int64_t sweep = SubmitOf("alice", "a", 6);
  const auto link = ConnectGpus("w", 2);
  const std::vector<store::Assignment> first = link->assignments;
  ASSERT_THAT(first, SizeIs(2));
  Pass(absl::Seconds(40), "w", link, first);
  SucceedFor(first[0], 40);  // the other one has taken 40 too
  ASSERT_THAT(link->assignments, SizeIs(3));
  EXPECT_THAT(spent_, IsEmpty());
  Pass(absl::Seconds(10), "w", link, {first[1], link->assignments[2]});
  EXPECT_EQ(scheduler_->WaitingReason(sweep),
            "alice has used 100 of 100 GPU seconds; an operator can raise this (pelab admin "
            "principal change alice --gpu-seconds N)");
  SucceedFor(first[1], 50);
  EXPECT_THAT(link->assignments, SizeIs(3));
  EXPECT_EQ(Open(), "1") << "what runs is left alone";
  SubmitOf("bob", "b", 1);
  ASSERT_THAT(link->assignments, SizeIs(4));
  EXPECT_EQ(OwnerOf(link->assignments[3]), "bob");
  SucceedFor(link->assignments[2], 10);
  EXPECT_EQ(Text("SELECT count(*) FROM jobs WHERE state = 'succeeded'"), "3");
  EXPECT_THAT(link->assignments, SizeIs(4));
  EXPECT_EQ(spent_, std::vector<std::string>({"alice"})) << "once";
}

TEST_F(PrincipalLimitsTest, ABudgetThatWasRaisedIsToldOfAgain) {
  SetPrincipal("alice", {.gpu_seconds = 10});
  SubmitOf("alice", "a", 2);
  const auto link = ConnectGpus("w", 1);
  SucceedFor(link->assignments.at(0), 10);
  EXPECT_EQ(spent_.size(), 1u) << "also if nothing of hers waits";
  SetPrincipal("alice", {.gpu_seconds = 15, .gpu_seconds_used = 10});
  EXPECT_EQ(spent_.size(), 1u);
  ASSERT_THAT(link->assignments, SizeIs(2));
  SucceedFor(link->assignments[1], 5);
  EXPECT_EQ(spent_, std::vector<std::string>({"alice", "alice"}));
  SetPrincipal("alice", {.gpu_seconds = 12, .gpu_seconds_used = 15});
  SubmitOf("alice", "b", 1);
  EXPECT_EQ(spent_.size(), 2u) << "who sets less than was used knows it";
}

TEST_F(PrincipalLimitsTest, WhatWasUsedBeforeTheStartCounts) {
  SetPrincipal("alice", {.gpu_seconds = 3600, .gpu_seconds_used = 3600});
  SubmitOf("alice", "a", 1);
  EXPECT_THAT(ConnectGpus("w", 1)->assignments, IsEmpty());
}

TEST_F(PrincipalLimitsTest, JobsOfOneSlotDivideItsTime) {
  SetPrincipal("alice", {.gpu_seconds = 100});
  owner_ = "alice";
  SubmitSeeds("a", 2, 4);
  const auto link = ConnectGpus("w", 1, 4);
  const std::vector<store::Assignment> pack = link->assignments;
  ASSERT_THAT(pack, SizeIs(4));
  Pass(absl::Seconds(90), "w", link, pack);
  const auto other = ConnectGpus("other", 1);
  ASSERT_THAT(other->assignments, SizeIs(1)) << "90 seconds are used, not 360";
  Pass(absl::Seconds(10), "w", link, pack);
  Fail(other->assignments[0], state::ErrorKind::kNonFiniteLoss);
  EXPECT_THAT(other->assignments, SizeIs(1)) << "now 100 are";
}

TEST_F(PrincipalLimitsTest, ProcessorsTakeNothingFromABudget) {
  SetPrincipal("alice", {.gpu_seconds = 1});
  SubmitOf("alice", "a", 3);
  const auto link = Connect("w", 1);
  Pass(absl::Seconds(60), "w", link, link->assignments);
  EXPECT_THAT(Connect("other", 1)->assignments, SizeIs(1));
}

// The store ends an attempt whose job is queued again for another reason.
TEST_F(PrincipalLimitsTest, ASupersededAttemptIsChargedToo) {
  SetPrincipal("alice", {.gpu_seconds = 50});
  SubmitOf("alice", "a", 2);
  const auto link = ConnectGpus("w", 1);
  const store::Assignment first = link->assignments.at(0);
  Pass(absl::Seconds(60), "w", link, {first});
  scheduler_->Expanded({.applied = true, .superseded = {first.attempt_id}});
  scheduler_->Heartbeat("w", link.get(), {});
  world_.Settle();
  EXPECT_THAT(scheduler_->Workers()[0].leases, IsEmpty());
  EXPECT_THAT(link->assignments, SizeIs(1)) << "its slot is free, but the budget is spent";
}

TEST_F(PrincipalLimitsTest, ARaisedLimitStartsJobsAtOnce) {
  SetPrincipal("alice", {.max_slots = 1, .gpu_seconds = 10});
  SubmitOf("alice", "a", 9);
  const auto link = ConnectGpus("w", 4);
  EXPECT_THAT(link->assignments, SizeIs(1));
  SetPrincipal("alice", {.max_slots = 2, .gpu_seconds = 10});
  EXPECT_THAT(link->assignments, SizeIs(2));
  Pass(absl::Seconds(10), "w", link, link->assignments);
  SetPrincipal("alice", {.gpu_seconds = 10});
  EXPECT_THAT(link->assignments, SizeIs(2));
  SetPrincipal("alice", {.gpu_seconds = 100});
  EXPECT_THAT(link->assignments, SizeIs(4));
  // A lower limit ends nothing.
  SetPrincipal("alice", {.max_slots = 1});
  EXPECT_EQ(Open(), "4");
  EXPECT_THAT(link->stops, IsEmpty());
}

TEST_F(PrincipalLimitsTest, AJobOfTwoPrincipalsRunsForTheOneThatMay) {
  SetPrincipal("alice", {.max_slots = 1});
  const std::int64_t hers = SubmitOf("alice", "s", 2, 9);
  owner_ = "bob";
  const auto stored = Do<store::SweepStored>(
      store::SubmitSweep{.name = "t", .client_token = "t", .analyses_json = "[]", .cells = 1});
  store::ExpandSlice slice{.sweep_id = stored.sweep_id, .from = 0, .next = 1, .last = true};
  slice.cells.push_back(
      {.key = "s1", .spec_json = "{}", .requirement = {.pe = "rope"}, .epochs = 1});
  Expand(stored.sweep_id, slice);
  world_.disk_hangs = true;
  Connect("w", 2);
  const std::vector<store::CreateAttempt> planned = Planned();
  ASSERT_THAT(planned, SizeIs(2));
  EXPECT_EQ(planned[0].job_id, 1);
  EXPECT_EQ(planned[0].principal, "alice");
  EXPECT_EQ(planned[1].job_id, 2) << "which alice's sweep claims too";
  EXPECT_EQ(planned[1].principal, "bob");
  world_.disk_hangs = false;
  world_.Settle();
  EXPECT_EQ(scheduler_->WaitingReason(hers), "");
}

TEST_F(PrincipalLimitsTest, NobodyPaysForASweepWithoutAnOwner) {
  SetPrincipal("alice", {.max_slots = 1});
  Submit("s", 3);
  world_.disk_hangs = true;
  Connect("w", 3);
  const std::vector<store::CreateAttempt> planned = Planned();
  ASSERT_THAT(planned, SizeIs(3)) << "no limit applies";
  for (const store::CreateAttempt& each : planned) EXPECT_EQ(each.principal, "");
}

TEST_F(PrincipalLimitsTest, AnOwnerThatNobodySetHasNoLimit) {
  SubmitOf("carol", "c", 8);
  SubmitOf("bob", "b", 8);
  const auto link = Connect("w", 8);
  EXPECT_EQ(CountByOwner(link->assignments), (Counts{{"bob", 4}, {"carol", 4}}));
}

TEST_F(PrincipalLimitsTest, WhatWasOpenAtARestartCounts) {
  SetPrincipal("alice", {.max_slots = 2});
  SubmitOf("alice", "a", 5);
  const auto before = Connect("w", 2);
  const std::vector<store::Assignment> held = before->assignments;
  ASSERT_THAT(held, SizeIs(2));
  for (const store::Assignment& a : held) Say(a, 1, StartedEvent(0, 1));
  Restart("alice", {.max_slots = 2});
  const auto after = Connect("w", 4, {Holding(held[0]), Holding(held[1])});
  EXPECT_THAT(after->assignments, IsEmpty());
  Say(held[0], 2, OneWrong());
  Say(held[0], 3, SucceededEvent());
  EXPECT_THAT(after->assignments, SizeIs(1));
}

TEST_F(PrincipalLimitsTest, WhatHasRunSinceARestartTakesFromTheBudget) {
  SubmitOf("alice", "a", 2);
  const std::vector<store::Assignment> held = ConnectGpus("w", 1)->assignments;
  Restart("alice", {.gpu_seconds = 30});
  const auto after = ConnectGpus("w", 1, 1, {Holding(held.at(0))});
  Pass(absl::Seconds(30), "w", after, held);
  EXPECT_THAT(ConnectGpus("other", 1)->assignments, IsEmpty());
}

TEST_F(PrincipalLimitsTest, WhatRanBeforeARestartTakesFromTheBudgetOfWhoBeganIt) {
  SubmitOf("alice", "a", 2);
  const auto before = ConnectGpus("w", 1);
  const std::vector<store::Assignment> held = before->assignments;
  Pass(absl::Seconds(20), "w", before, held);
  Restart("alice", {.gpu_seconds = 30});
  const auto after = ConnectGpus("w", 1, 1, {Holding(held.at(0))});
  Pass(absl::Seconds(10), "w", after, held);
  const auto other = ConnectGpus("other", 1);
  EXPECT_THAT(other->assignments, IsEmpty());
  SubmitOf("bob", "b", 1);
  EXPECT_THAT(other->assignments, SizeIs(1)) << "others go on";
}

TEST_F(PrincipalLimitsTest, ASweepSaysWhichLimitHoldsIt) {
  SetPrincipal("alice", {.max_slots = 2});
  const std::int64_t sweep = SubmitOf("alice", "a", 5);
  EXPECT_EQ(scheduler_->WaitingReason(sweep), "no worker is connected");
  const auto link = Connect("w", 2);
  const std::string held =
      "alice has 2 of 2 slots; an operator can raise this (pelab admin principal change alice "
      "--max-slots N)";
  EXPECT_EQ(scheduler_->WaitingReason(sweep), held);
  const std::int64_t other = SubmitOf("alice", "other", 1);
  EXPECT_EQ(scheduler_->WaitingReason(other), held);
  const std::int64_t bobs = SubmitOf("bob", "b", 1);
  EXPECT_EQ(scheduler_->WaitingReason(bobs),
            "the 2 slots of the connected workers are busy with other sweeps");
  SetPrincipal("alice", {.max_slots = 3});
  EXPECT_EQ(scheduler_->WaitingReason(sweep), "");
}

TEST_F(PrincipalLimitsTest, JobsOfACancelledSweepCountUntilTheyHaveEnded) {
  SetPrincipal("alice", {.max_slots = 1});
  const std::int64_t sweep = SubmitOf("alice", "a", 500);
  const auto link = Connect("w", 2);
  ASSERT_THAT(link->assignments, SizeIs(1));
  auto part = Do<store::Cancelled>(store::CancelSweep{sweep, 1});
  while (true) {
    scheduler_->Cancelled(part);
    if (!part.more) break;
    part = Do<store::Cancelled>(store::DropSlice{sweep, 1});
  }
  SubmitOf("alice", "next", 2);
  EXPECT_THAT(link->assignments, SizeIs(1));
  Say(link->assignments[0], 1, EndEvent(v1::ATTEMPT_OUTCOME_CANCELLED));
  EXPECT_THAT(link->assignments, SizeIs(2));
}

}  // namespace
}  // namespace pelab::sched
