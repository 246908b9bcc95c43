#include "server/sched/ready_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace pelab::sched {
namespace {

store::ReadyJob Job(std::int64_t id, std::int64_t sweep, std::int64_t ordinal,
                    const std::string& device = "any", std::vector<store::Claim> others = {}) {
  return {.job_id = id,
          .sweep_id = sweep,
          .ordinal = ordinal,
          .others = std::move(others),
          .requirement = {.device_kind = device}};
}

class ReadyQueueTest : public testing::Test {
 protected:
  // Returns the picked job's id and counts the job as running; 0 if there is none.
  std::int64_t Pick(const std::string& device = "") {
    const auto fits = [&](const store::Requirement& r) {
      return device.empty() || r.device_kind == device;
    };
    const auto job = queue_.Pick(fits, [this](std::int64_t sweep) { return running_[sweep]; });
    if (!job) return 0;
    running_[job->sweep_id] += 1;
    return job->job_id;
  }
  Accounts accounts_;
  ReadyQueue queue_{accounts_};
  std::map<std::int64_t, int> running_;
};

TEST_F(ReadyQueueTest, ASweepGoesInItsOrder) {
  for (const int id : {3, 1, 2}) queue_.Add(Job(id, 1, id));
  EXPECT_EQ(Pick(), 1);
  EXPECT_EQ(Pick(), 2);
  EXPECT_EQ(Pick(), 3);
  EXPECT_EQ(Pick(), 0);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(ReadyQueueTest, PriorityComesFirst) {
  queue_.SetSweepSettings({.sweep_id = 1, .priority = -5});
  queue_.Add(Job(1, 1, 0));
  queue_.Add(Job(2, 2, 0));
  queue_.SetSweepSettings({.sweep_id = 2, .priority = 10});  // before or after its jobs were added
  queue_.Add(Job(3, 3, 0));
  EXPECT_EQ(Pick(), 2);
  EXPECT_EQ(Pick(), 3);
  EXPECT_EQ(Pick(), 1);
}

TEST_F(ReadyQueueTest, SweepsShareFairly) {
  for (int i = 0; i < 4; ++i) queue_.Add(Job(10 + i, 1, i));
  for (int i = 0; i < 4; ++i) queue_.Add(Job(20 + i, 2, i));
  running_[1] = 1;  // an older sweep that has a slot already
  EXPECT_EQ(Pick(), 20);
  EXPECT_EQ(Pick(), 10);
  EXPECT_EQ(Pick(), 21);
  EXPECT_EQ(Pick(), 11);
}

TEST_F(ReadyQueueTest, WhatDoesNotFitIsPassedOver) {
  queue_.Add(Job(1, 1, 0, "gpu"));
  queue_.Add(Job(2, 1, 1, "cpu"));
  EXPECT_EQ(Pick("cpu"), 2);
  EXPECT_EQ(Pick("cpu"), 0);
  EXPECT_EQ(Pick("gpu"), 1);
}

TEST_F(ReadyQueueTest, AddingAgainMovesAndRemovingForgets) {
  queue_.Add(Job(1, 1, 0));
  queue_.Add(Job(2, 1, 1));
  queue_.Add(Job(2, 2, 1));
  running_[1] = 1;
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(Pick(), 2);
  EXPECT_TRUE(queue_.Remove(1));
  EXPECT_FALSE(queue_.Remove(1));
  EXPECT_EQ(Pick(), 0);
}

TEST_F(ReadyQueueTest, APausedSweepIsSkippedUntilItGoesOn) {
  for (int i = 0; i < 3; ++i) queue_.Add(Job(10 + i, 1, i));
  EXPECT_EQ(Pick(), 10);
  queue_.SetSweepSettings({.sweep_id = 1, .paused = true});
  EXPECT_EQ(Pick(), 0);
  EXPECT_TRUE(queue_.empty()) << "nobody need look at it";
  EXPECT_EQ(queue_.size(), 2u);
  queue_.Add(Job(13, 1, 3));  // the sweep may still be expanding
  EXPECT_EQ(Pick(), 0);
  EXPECT_EQ(queue_.RequirementsOf(1).size(), 1u);
  queue_.SetSweepSettings({.sweep_id = 1});
  EXPECT_EQ(Pick(), 11);
  EXPECT_EQ(Pick(), 12);
  EXPECT_EQ(Pick(), 13);
}

TEST_F(ReadyQueueTest, AJobGoesWithTheMostUrgentUnpausedSweepThatClaimsIt) {
  queue_.Add(Job(1, 1, 0, "any", {{2, 7}, {3, 9}}));
  queue_.Add(Job(2, 4, 0));
  queue_.SetSweepSettings({.sweep_id = 2, .priority = 5});
  queue_.SetSweepSettings({.sweep_id = 3, .priority = 9, .paused = true});
  queue_.SetSweepSettings({.sweep_id = 4, .priority = 4});
  const auto all = [](const store::Requirement&) { return true; };
  const auto none = [](std::int64_t) { return 0; };
  const auto first = queue_.Pick(all, none);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->job_id, 1);
  EXPECT_EQ(first->sweep_id, 2) << "which pays for it with its share";
  EXPECT_EQ(first->ordinal, 7);
  // A job that is put back is in every sweep's queue again.
  queue_.Add(*first);
  EXPECT_EQ(queue_.size(), 2u);
  queue_.SetSweepSettings({.sweep_id = 2, .priority = 5, .paused = true});
  EXPECT_EQ(queue_.Pick(all, none)->job_id, 2);
  EXPECT_EQ(queue_.Pick(all, none)->sweep_id, 1);
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(ReadyQueueTest, ForgettingASweepLeavesWhatOthersClaim) {
  queue_.Add(Job(1, 1, 0));
  queue_.Add(Job(2, 1, 1, "any", {{2, 0}}));
  queue_.Add(Job(3, 2, 1, "any", {{1, 2}}));
  queue_.SetSweepSettings({.sweep_id = 1, .priority = 9});
  queue_.Forget(1);
  queue_.Forget(1);
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(Pick(), 2);
  EXPECT_EQ(Pick(), 3);
  EXPECT_EQ(Pick(), 0);
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(ReadyQueueTest, NobodyStarvesAmongEquals) {
  // Sweep 1 is large; the others come later and are small. Each gets its turn as slots become free.
  for (int i = 0; i < 1000; ++i) queue_.Add(Job(1000 + i, 1, i));
  running_[1] = 8;  // it has all the slots
  for (int sweep = 2; sweep <= 5; ++sweep) {
    for (int i = 0; i < 2; ++i) queue_.Add(Job(sweep * 10 + i, sweep, i));
  }
  // The next four slots go to the sweeps without a slot.
  for (int freed = 0; freed < 4; ++freed) {
    running_[1] -= 1;
    EXPECT_LT(Pick(), 1000);
  }
  for (int sweep = 1; sweep <= 5; ++sweep) EXPECT_GE(running_[sweep], 1) << sweep;
  // After that all sweeps advance evenly, so the large one does not starve either.
  for (int freed = 0; freed < 3; ++freed) {
    running_[1] -= 1;
    Pick();
  }
  for (int sweep = 1; sweep <= 5; ++sweep) {
    EXPECT_GE(running_[sweep], 1) << sweep;
    EXPECT_LE(running_[sweep], 2) << sweep;
  }
  while (Pick() != 0) {
  }
  EXPECT_EQ(queue_.size(), 0u);
}

// Jobs of one configuration, and which of them a trainer takes together.
class AlikeJobsTest : public ReadyQueueTest {
 protected:
  static store::ReadyJob Alike(std::int64_t id, std::int64_t configuration,
                               const std::string& execution = "") {
    store::ReadyJob job = Job(id, 1, id);
    job.configuration_id = configuration;
    job.execution = execution;
    return job;
  }
  // Returns the next job's id and the ids of the jobs that go with it.
  std::vector<std::int64_t> PickPack(std::size_t most) {
    const auto job = queue_.Pick([](const auto&) { return true; }, [](auto) { return 0; });
    if (!job) return {};
    std::vector<std::int64_t> ids = {job->job_id};
    for (const store::ReadyJob& each : queue_.PickAlike(*job, most)) {
      EXPECT_EQ(each.sweep_id, job->sweep_id);
      EXPECT_EQ(each.configuration_id, job->configuration_id);
      EXPECT_EQ(each.execution, job->execution);
      ids.push_back(each.job_id);
    }
    return ids;
  }
  using Ids = std::vector<std::int64_t>;
};

TEST_F(AlikeJobsTest, FollowOneAnotherUpToTheMost) {
  for (const int id : {1, 2, 3, 4, 5}) queue_.Add(Alike(id, 7));
  EXPECT_EQ(PickPack(2), Ids({1, 2, 3}));
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(PickPack(9), Ids({4, 5}));
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(PickPack(9), Ids());
}

TEST_F(AlikeJobsTest, EndAtTheFirstThatDiffers) {
  for (const int id : {1, 2, 4}) queue_.Add(Alike(id, 7));
  queue_.Add(Alike(3, 8));
  queue_.Add(Alike(5, 7, "{\"packing\":8}"));
  queue_.Add(Alike(6, 7, "{\"packing\":8}"));
  EXPECT_EQ(PickPack(9), Ids({1, 2})) << "not 4, which follows another";
  EXPECT_EQ(PickPack(9), Ids({3}));
  EXPECT_EQ(PickPack(9), Ids({4})) << "not those that began otherwise";
  EXPECT_EQ(PickPack(9), Ids({5, 6}));
}

TEST_F(AlikeJobsTest, WithoutAConfigurationAJobGoesByItself) {
  queue_.Add(Alike(1, 0));
  queue_.Add(Alike(2, 0));
  EXPECT_EQ(PickPack(9), Ids({1}));
}

TEST_F(AlikeJobsTest, NeedTheSameOfTheirSlot) {
  store::ReadyJob other = Alike(2, 7);
  other.requirement.analyses = {{"head_ablation", 2}};
  queue_.Add(Alike(1, 7));
  queue_.Add(other);
  queue_.Add(Alike(3, 7));
  EXPECT_EQ(PickPack(9), Ids({1, 3}));
  EXPECT_EQ(PickPack(9), Ids({2}));
}

TEST_F(AlikeJobsTest, LeaveTheLinesOfEverySweepThatClaimsThem) {
  for (const int id : {1, 2, 3}) {
    store::ReadyJob job = Job(id, 1, id, "any", {{2, 10 - id}});
    job.configuration_id = 7;
    queue_.Add(job);
  }
  queue_.SetSweepSettings({.sweep_id = 2, .priority = 1});
  // The sweep with the higher priority has them in another order and gets them.
  EXPECT_EQ(PickPack(1), Ids({3, 2}));
  const auto last = queue_.Pick([](const auto&) { return true; }, [](auto) { return 0; });
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->job_id, 1);
  EXPECT_EQ(last->sweep_id, 2);
  EXPECT_EQ(last->others, (std::vector<store::Claim>{{1, 1}}));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(AlikeJobsTest, WhatIsPutBackIsAlikeAgain) {
  queue_.Add(Alike(1, 7, "{}"));
  queue_.Add(Alike(2, 7, "{}"));
  const auto job = queue_.Pick([](const auto&) { return true; }, [](auto) { return 0; });
  queue_.Add(*job);
  EXPECT_EQ(PickPack(9), Ids({1, 2}));
}

TEST_F(ReadyQueueTest, CountsWhatWaitsOnceAndNotWhatIsPaused) {
  const auto waiting = [&](const std::string& device) {
    return queue_.Waiting(
        [&](const store::Requirement& r) { return device.empty() || r.device_kind == device; });
  };
  EXPECT_EQ(waiting(""), 0u);
  queue_.Add(Job(1, 1, 0, "gpu", {{2, 0}, {3, 0}}));
  queue_.Add(Job(2, 1, 1, "gpu", {{2, 1}}));
  queue_.Add(Job(3, 1, 2, "cpu"));
  queue_.Add(Job(4, 4, 0, "cpu"));
  EXPECT_EQ(waiting(""), 4u);
  EXPECT_EQ(waiting("gpu"), 2u);
  queue_.SetSweepSettings({.sweep_id = 4, .paused = true});
  EXPECT_EQ(waiting("cpu"), 1u);
  queue_.SetSweepSettings({.sweep_id = 1, .paused = true});
  EXPECT_EQ(waiting("cpu"), 0u);
  EXPECT_EQ(waiting("gpu"), 2u) << "others claim them";
  queue_.Forget(3);
  queue_.Remove(1);
  EXPECT_EQ(waiting("gpu"), 1u);
  queue_.Forget(1);
  queue_.Forget(2);
  EXPECT_EQ(waiting("gpu"), 0u);
}

// Sweeps that have owners.
class OwnersTest : public ReadyQueueTest {
 protected:
  // Adds `jobs` jobs, with ids that follow 100 times the id of their sweep.
  void Sweep(std::int64_t id, const std::string& owner, int jobs, int priority = 0) {
    queue_.SetSweepSettings({.sweep_id = id, .priority = priority, .owner = owner});
    for (int i = 0; i < jobs; ++i) queue_.Add(Job(100 * id + i, id, i));
  }
  // Starts the next job and returns its sweep; 0 if none may start.
  std::int64_t Start() {
    const auto job = queue_.Pick([](const auto&) { return true; },
                                 [this](std::int64_t sweep) { return running_[sweep]; });
    if (!job) return 0;
    running_[job->sweep_id] += 1;
    accounts_.Start(queue_.AccountOf(job->sweep_id));
    return job->sweep_id;
  }
  void End(std::int64_t sweep) {
    running_[sweep] -= 1;
    queue_.AccountOf(sweep).Stop();
  }
  std::size_t Waiting() const {
    return queue_.Waiting([](const auto&) { return true; });
  }
};

TEST_F(OwnersTest, GetSlotsByTheirShareHoweverManySweepsTheyHave) {
  accounts_.Set("alice", {.share = 2});
  for (int sweep = 1; sweep <= 6; ++sweep) Sweep(sweep, "bob", 9);
  for (int sweep = 7; sweep <= 8; ++sweep) Sweep(sweep, "alice", 9);
  for (int i = 0; i < 18; ++i) EXPECT_NE(Start(), 0);
  for (int sweep = 1; sweep <= 6; ++sweep) EXPECT_EQ(running_[sweep], 1) << sweep;
  for (int sweep = 7; sweep <= 8; ++sweep) EXPECT_EQ(running_[sweep], 6) << sweep;
  // What a principal gives back comes back to it.
  End(8);
  EXPECT_EQ(Start(), 8);
  End(3);
  EXPECT_EQ(Start(), 3);
}

TEST_F(OwnersTest, TakeTurnsOverASingleSlot) {
  Sweep(1, "alice", 9);
  Sweep(2, "bob", 9);
  Sweep(3, "", 9);
  std::map<std::int64_t, int> turns;
  for (int i = 0; i < 9; ++i) {
    const std::int64_t sweep = Start();
    turns[sweep] += 1;
    End(sweep);
  }
  EXPECT_EQ(turns, (std::map<std::int64_t, int>{{1, 3}, {2, 3}, {3, 3}}));
}

TEST_F(OwnersTest, APriorityComesBeforeAnyShare) {
  accounts_.Set("alice", {.share = 100});
  Sweep(1, "alice", 2);
  Sweep(2, "bob", 3, 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Start(), 2);
  EXPECT_EQ(Start(), 1);
}

TEST_F(OwnersTest, AtALimitArePassedOverByLessUrgentSweepsToo) {
  accounts_.Set("alice", {.max_slots = 2});
  accounts_.Set("carol", {.gpu_seconds = 60, .gpu_seconds_used = 60});
  Sweep(1, "alice", 9, 5);
  Sweep(2, "carol", 9, 5);
  Sweep(3, "bob", 1);
  EXPECT_EQ(Start(), 1);
  EXPECT_EQ(Start(), 1);
  EXPECT_EQ(Start(), 3);
  EXPECT_EQ(Start(), 0);
  EXPECT_FALSE(queue_.empty()) << "somebody must look at it once the limit is raised";
  End(1);
  EXPECT_EQ(Start(), 1);
  EXPECT_EQ(Start(), 0);
  accounts_.Set("carol", {.gpu_seconds = 61, .gpu_seconds_used = 60});
  EXPECT_EQ(Start(), 2);
}

TEST_F(OwnersTest, AJobOfTwoRunsForTheOneThatMayStartIt) {
  accounts_.Set("alice", {.max_slots = 1});
  Sweep(1, "alice", 1, 5);
  Sweep(2, "bob", 0);
  queue_.Add(Job(7, 1, 1, "any", {{2, 3}}));
  EXPECT_EQ(Start(), 1);
  const auto job = queue_.Pick([](const auto&) { return true; }, [](auto) { return 0; });
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->job_id, 7);
  EXPECT_EQ(job->sweep_id, 2);
  EXPECT_EQ(job->ordinal, 3);
  EXPECT_EQ(job->others, (std::vector<store::Claim>{{1, 1}}));
  EXPECT_EQ(queue_.size(), 0u) << "it has left both lines";
}

TEST_F(OwnersTest, KeepTheirSweepsThatHaveNoJobsHereForNow) {
  Sweep(1, "alice", 1);
  EXPECT_EQ(Start(), 1);
  EXPECT_EQ(queue_.AccountOf(1).name(), "alice");
  queue_.SetSweepSettings({.sweep_id = 1, .paused = true, .owner = "alice"});
  queue_.SetSweepSettings({.sweep_id = 1, .owner = "alice"});
  EXPECT_EQ(queue_.AccountOf(1).name(), "alice");
  queue_.Forget(1);
  EXPECT_EQ(queue_.AccountOf(1).name(), "");
}

TEST_F(OwnersTest, WhatALimitHoldsDoesNotCountAsWaiting) {
  accounts_.Set("alice", {.max_slots = 3});
  Sweep(1, "alice", 5);
  Sweep(2, "alice", 5, 1);
  Sweep(3, "bob", 4);
  EXPECT_EQ(Waiting(), 3u + 4u);
  EXPECT_EQ(Start(), 2);
  EXPECT_EQ(Waiting(), 2u + 4u);
  accounts_.Set("alice", {.max_slots = 1});
  EXPECT_EQ(Waiting(), 4u);
  accounts_.Set("alice", {});
  EXPECT_EQ(Waiting(), 9u + 4u);
}

TEST_F(OwnersTest, AReasonNamesTheLimitItsUseAndWhoRaisesIt) {
  Account& alice = accounts_.Of("alice");
  accounts_.Set("alice", {.max_slots = 1, .gpu_seconds = 3600, .gpu_seconds_used = 3599.5});
  EXPECT_EQ(alice.WhyHeld(), "");
  accounts_.Start(alice);
  EXPECT_EQ(alice.WhyHeld(),
            "alice has 1 of 1 slots; an operator can raise this (pelab admin principal change "
            "alice --max-slots N)");
  alice.Charge(1);
  EXPECT_EQ(alice.WhyHeld(),
            "alice has used 3600 of 3600 GPU seconds; an operator can raise this (pelab admin "
            "principal change alice --gpu-seconds N)");
}

TEST_F(OwnersTest, ChargesSinceAnAllowanceWasReadAreKept) {
  Account& alice = accounts_.Of("alice");
  accounts_.Set("alice", {.gpu_seconds = 100, .gpu_seconds_used = 40});
  alice.Charge(50);
  accounts_.Set("alice", {.gpu_seconds = 90, .gpu_seconds_used = 40});
  EXPECT_FALSE(alice.MayStart());
  accounts_.Set("alice", {.gpu_seconds = 91, .gpu_seconds_used = 40});
  EXPECT_TRUE(alice.MayStart());
  accounts_.SetOpen({{&alice, 1}});
  EXPECT_FALSE(alice.MayStart());
  accounts_.SetOpen({});
  EXPECT_TRUE(alice.MayStart());
}

TEST_F(OwnersTest, OneOwnerWithoutLimitsChangesNothing) {
  Accounts accounts;
  ReadyQueue unowned(accounts);
  std::map<std::int64_t, int> running;
  std::mt19937 random(18);  // NOLINT: the same every time
  const auto any = [&](int most) { return static_cast<int>(random() % most); };
  std::int64_t jobs = 0;
  for (int step = 0; step < 5000; ++step) {
    const std::int64_t sweep = 1 + any(6);
    switch (any(4)) {
      case 0: {
        const int priority = any(2);
        const bool paused = any(4) == 0;
        queue_.SetSweepSettings(
            {.sweep_id = sweep, .priority = priority, .paused = paused, .owner = "alice"});
        unowned.SetSweepSettings({.sweep_id = sweep, .priority = priority, .paused = paused});
        break;
      }
      case 1: {
        ++jobs;
        const store::ReadyJob job = Job(jobs, sweep, any(50), "any", {{1 + sweep % 6, any(50)}});
        queue_.Add(job);
        unowned.Add(job);
        break;
      }
      case 2:
        if (running[sweep] == 0) break;
        running[sweep] -= 1;
        End(sweep);
        break;
      default: {
        const auto job = unowned.Pick([](const auto&) { return true; },
                                      [&](std::int64_t id) { return running[id]; });
        ASSERT_EQ(Start(), job ? job->sweep_id : 0) << step;
        if (job) running[job->sweep_id] += 1;
        ASSERT_EQ(job && queue_.Contains(job->job_id), false) << step;
        ASSERT_EQ(queue_.size(), unowned.size()) << step;
      }
    }
  }
  EXPECT_GT(jobs, 1000);
}

TEST_F(ReadyQueueTest, AMillionJobsArePausedAndRaisedAtOnce) {
  constexpr int kJobs = 1'000'000;
  for (int i = 0; i < kJobs; ++i) queue_.Add(Job(i + 1, 1, i));
  queue_.Add(Job(kJobs + 1, 2, 0));
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    queue_.SetSweepSettings({.sweep_id = 1, .priority = i % 7, .paused = true});
    EXPECT_EQ(queue_.IsPaused(1), true);
    queue_.SetSweepSettings({.sweep_id = 1, .priority = i % 5});
  }
  const auto took = std::chrono::steady_clock::now() - before;
  EXPECT_LT(took, std::chrono::seconds(1)) << "2,000 changes must not touch the jobs";
  EXPECT_EQ(Pick(), 1);
}

}  // namespace
}  // namespace pelab::sched
