// The scheduler's promises about leases: when a worker counts as lost, the reasons it names, and
// pauses that count against no worker.
#include "tests/unit/server/sched/scheduler_fixture.h"

namespace pelab::sched {
namespace {

TEST_F(SchedulerTest, ASilentWorkersJobIsGivenAwayAfterOneLease) {
  Submit("s", 1);
  const auto silent = Connect("silent", 1);
  const auto other = Connect("other", 1);
  ASSERT_EQ(silent->assignments.size() + other->assignments.size(), 1u);
  const auto& holder = silent->assignments.empty() ? other : silent;
  const store::Assignment first = holder->assignments[0];
  world_.Advance(absl::Seconds(19));
  EXPECT_EQ(Text("SELECT count(*) FROM attempts"), "1");
  world_.Advance(absl::Seconds(2));
  EXPECT_EQ(Text("SELECT count(*) FROM attempts"), "2");
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE number = 1"), "lost");
  // A worker that reports the attempt again is told to stop it.
  ASSERT_EQ(holder->stops.size(), 1u);
  scheduler_->Heartbeat(holder == silent ? "silent" : "other", holder.get(), {Holding(first)});
  ASSERT_EQ(holder->stops.size(), 2u);
  EXPECT_EQ(holder->stops[1], std::make_pair(first.attempt_id, StopReason::kSuperseded));
}

// A frozen or cut-off worker: its connection looks alive for a long time.
TEST_F(SchedulerTest, ASilentWorkerCostsOneLeaseAndNoFurtherJob) {
  Submit("s", 5);
  const auto link = Connect("w", 1);
  const store::Assignment first = link->assignments.at(0);
  world_.Advance(absl::Minutes(10));
  EXPECT_EQ(Text("SELECT group_concat(outcome) FROM attempts"), "lost");
  EXPECT_EQ(link->assignments.size(), 1u);
  EXPECT_EQ(scheduler_->WaitingReason(1), "no connected worker was heard of for 20s");
  scheduler_->Heartbeat("w", link.get(), {Holding(first)});
  world_.Settle();
  EXPECT_EQ(link->assignments.size(), 2u) << "it is back";
  EXPECT_EQ(scheduler_->WaitingReason(1), "");
  // The same holds after it reconnects.
  world_.Advance(absl::Minutes(10));
  EXPECT_EQ(link->assignments.size(), 2u);
  EXPECT_EQ(Connect("w", 1)->assignments.size(), 1u);
}

// Sessions end when an event cannot be stored, and hellos are refused. That is not the workers'
// fault.
TEST_F(SchedulerTest, NobodyIsLostWhileTheDiskIsFull) {
  Submit("s", 3);
  const auto link = Connect("w1", 1);
  const auto silent = Connect("w2", 1);
  const store::Assignment job = link->assignments.at(0);
  const store::Assignment gone = silent->assignments.at(0);
  Say(job, 1, StartedEvent(0, 1));
  Say(gone, 1, StartedEvent(0, 1));
  world_.disk_full = true;
  scheduler_->Disconnected("w1", link.get());
  scheduler_->Disconnected("w2", silent.get());
  world_.Advance(absl::Minutes(10));
  const auto open = [&] { return Text("SELECT count(*) FROM attempts WHERE outcome IS NULL"); };
  EXPECT_EQ(open(), "2");
  world_.disk_full = false;
  world_.Advance(absl::Seconds(5));  // noticed, although nobody else writes
  EXPECT_EQ(open(), "2") << "a worker is lost that had no time to come back";
  const auto back = Connect("w1", 1, {Holding(job)});
  EXPECT_EQ(open(), "2");
  for (int i = 0; i < 4; ++i) {
    world_.Advance(absl::Seconds(5));
    scheduler_->Heartbeat("w1", back.get(), {Holding(job)});
  }
  // A worker that does not come back is lost one lease later.
  EXPECT_EQ(Text("SELECT group_concat(outcome) FROM attempts WHERE worker_id = 'w2'"), "lost");
  Say(job, 2, OneWrong());
  Say(job, 3, SucceededEvent());
  EXPECT_EQ(Text("SELECT state FROM jobs WHERE job_id = " + absl::StrCat(job.job_id)), "succeeded");
}

// A lease gets the time of an outage, not a whole lease for each one.
TEST_F(SchedulerTest, ADeadWorkerIsLostAlthoughTheDiskFailsAgainAndAgain) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  ASSERT_EQ(link->assignments.size(), 1u);
  scheduler_->Disconnected("w", link.get());
  const auto write = [&](bool full) {
    world_.disk_full = full;
    ASSERT_TRUE(world_
                    .Append(
                        {store::WorkerSeen{"w", "", 0}}, [](const auto&) {},
                        store::Journal::Urgency::kInternal)
                    .ok());
    world_.Settle();
  };
  for (int i = 0; i < 60; ++i) {
    write(/*full=*/true);
    write(/*full=*/false);
    world_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE number = 1"), "lost");
}

TEST_F(SchedulerTest, HeartbeatsRenewLeasesOfWhatIsHeld) {
  Submit("s", 2);
  const auto link = Connect("w", 2);
  const store::Assignment held = link->assignments[0];
  for (int i = 0; i < 10; ++i) {
    world_.Advance(absl::Seconds(5));
    scheduler_->Heartbeat("w", link.get(), {Holding(held)});
  }
  EXPECT_EQ(Text(absl::StrCat("SELECT outcome IS NULL FROM attempts WHERE attempt_id = ",
                              held.attempt_id)),
            "1");
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE attempt_id = 2"), "lost");
}

class SilenceTest : public SchedulerTest {
 protected:
  SilenceTest() {
    longest_silence_ = absl::Minutes(10);
    world_.steps.clear();
    world_.timed.clear();
    MakeScheduler();
  }
  // Time passes while the worker renews the leases of the assignments.
  void Pass(absl::Duration time, const std::shared_ptr<Link>& link,
            const std::vector<store::Assignment>& assignments) {
    std::vector<store::Held> held;
    for (const store::Assignment& a : assignments) held.push_back(Holding(a));
    for (absl::Duration passed; passed < time; passed += absl::Seconds(15)) {
      world_.Advance(absl::Seconds(15));
      scheduler_->Heartbeat("w", link.get(), held);
      world_.Settle();
    }
  }
};

TEST_F(SilenceTest, AnAttemptOfWhichNothingIsReportedIsLostAtLast) {
  Submit("s", 1);
  const auto hangs = Connect("w", 1);
  const std::vector<store::Assignment> held = hangs->assignments;
  ASSERT_EQ(held.size(), 1u);
  Pass(absl::Seconds(9 * 60 + 45), hangs, held);
  EXPECT_EQ(Text("SELECT outcome IS NULL FROM attempts"), "1");
  Pass(absl::Seconds(30), hangs, held);
  EXPECT_EQ(Text("SELECT error FROM attempts WHERE attempt_id = 1"),
            "worker w reported nothing about it for 10m (--attempt-silence)");
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE attempt_id = 1"), "lost");
  ASSERT_FALSE(hangs->stops.empty());
  EXPECT_EQ(hangs->stops[0], std::make_pair(held[0].attempt_id, StopReason::kSuperseded));
  EXPECT_EQ(Text("SELECT count(*) FROM attempts"), "2") << "the job is given out again";
}

TEST_F(SilenceTest, AnEventKeepsAnAttempt) {
  Submit("s", 2);
  const auto link = Connect("w", 2);
  const std::vector<store::Assignment> both = link->assignments;
  ASSERT_EQ(both.size(), 2u);
  Pass(absl::Minutes(9), link, both);
  Say(both[0], 1, StartedEvent(0, 1));
  Pass(absl::Minutes(9), link, both);
  const auto outcome = [&](const store::Assignment& a) {
    return Text(absl::StrCat("SELECT coalesce(outcome, 'open') FROM attempts WHERE attempt_id = ",
                             a.attempt_id));
  };
  EXPECT_EQ(outcome(both[0]), "open");
  EXPECT_EQ(outcome(both[1]), "lost") << "it has a slot of its own";
}

// Otherwise a worker could keep a job for ever by saying the same thing again and again.
TEST_F(SilenceTest, OnlyWhatIsNewKeepsAnAttempt) {
  Submit("s", 2);
  const auto link = Connect("w", 2);
  const std::vector<store::Assignment> both = link->assignments;
  ASSERT_EQ(both.size(), 2u);
  for (const store::Assignment& a : both) Say(a, 1, StartedEvent(0, 1));
  Pass(absl::Minutes(9), link, both);
  EXPECT_EQ(Say(both[0], 1, StartedEvent(0, 1)).status, store::EventStored::kDuplicate);
  EXPECT_EQ(Say(both[1], 2, CheckpointEvent(0, std::string(64, 'c'), 1)).status,
            store::EventStored::kStored);
  Pass(absl::Minutes(2), link, both);
  EXPECT_EQ(Text("SELECT count(*) FROM attempts WHERE outcome = 'lost' AND "
                 "error LIKE '%reported nothing about it%'"),
            "2");
}

TEST_F(SilenceTest, TimeInWhichNothingCouldBeStoredDoesNotCount) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  scheduler_->StorageWorks(false);
  Pass(absl::Minutes(11), link, link->assignments);
  scheduler_->StorageWorks(true);
  Pass(absl::Minutes(9), link, link->assignments);
  EXPECT_EQ(Text("SELECT count(*) FROM attempts WHERE outcome IS NULL"), "1");
}

// A stopped process, or a virtual machine that was moved: the heartbeats of that time are unread.
TEST_F(SchedulerTest, TimeInWhichTheCoordinatorStoodStillDoesNotCount) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  world_.Advance(absl::Seconds(15));
  world_.StandStill(absl::Minutes(5));
  world_.Advance(absl::Seconds(4));
  EXPECT_EQ(Text("SELECT outcome IS NULL FROM attempts"), "1");
  world_.Advance(absl::Seconds(2));
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE number = 1"), "lost");
}

TEST_F(SchedulerTest, ADeadWorkerIsLostAlthoughTheCoordinatorStandsStillAgainAndAgain) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  for (int i = 0; i < 25; ++i) {
    world_.StandStill(absl::Seconds(10));
    world_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE number = 1"), "lost");
}

TEST_F(SilenceTest, TimeInWhichTheCoordinatorStoodStillDoesNotCount) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  Pass(absl::Minutes(9), link, link->assignments);
  world_.StandStill(absl::Minutes(9));
  Pass(absl::Seconds(45), link, link->assignments);
  EXPECT_EQ(Text("SELECT outcome IS NULL FROM attempts"), "1");
  Pass(absl::Minutes(1), link, link->assignments);
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE number = 1"), "lost");
}

TEST_F(SchedulerTest, AnEventWithAFalseTokenRenewsNoLease) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  store::Assignment forged = link->assignments[0];
  forged.token += 1;
  world_.Advance(absl::Seconds(19));
  EXPECT_EQ(Say(forged, 1, StartedEvent(0, 1)).status, store::EventStored::kSuperseded);
  world_.Advance(absl::Seconds(2));
  EXPECT_EQ(Text("SELECT outcome FROM attempts"), "lost");
}

TEST_F(SchedulerTest, AWorkerThatIsHeardOfWhileItsLossCannotBeStoredKeepsItsLease) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  world_.disk_full = true;
  world_.disk_hangs = true;
  world_.Advance(absl::Seconds(21));
  scheduler_->Heartbeat("w", link.get(), {Holding(link->assignments[0])});
  world_.disk_hangs = false;
  world_.Settle();
  world_.disk_full = false;
  world_.Advance(absl::Seconds(19));
  EXPECT_EQ(Text("SELECT outcome IS NULL FROM attempts"), "1");
  // Its lease, and another one for the time in which nothing could be stored.
  world_.Advance(absl::Seconds(25));
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE number = 1"), "lost");
}

TEST_F(SchedulerTest, TheReasonOfALossOutlivesARefusedWrite) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  world_.disk_full = true;
  scheduler_->Goodbye("w", link.get());
  world_.Settle();
  world_.disk_full = false;
  world_.Advance(absl::Seconds(2));
  EXPECT_EQ(Text("SELECT error FROM attempts WHERE number = 1"), "worker w ended");
}

// An attempt that its worker never saw costs the job nothing, even if a full disk delays the write.
TEST_F(SchedulerTest, WhatIsNoLossStaysNoneAfterARefusedWrite) {
  Submit("s", 1);
  Connect("id-1", 1, {}, "{}", "gpu-7");
  world_.disk_full = true;
  scheduler_->WorkerGone("gpu-7", "its node has failed");
  world_.Settle();
  world_.disk_full = false;
  world_.Advance(absl::Seconds(30));
  EXPECT_EQ(Text("SELECT outcome FROM attempts"), "preempted");
  EXPECT_EQ(Text("SELECT lost_attempts FROM jobs"), "0");
}

TEST_F(SchedulerTest, ALossNamesTheWorkerAsPeopleSeeIt) {
  Submit("s", 1);
  const auto first = Connect("3acd1d38-fab7", 1, {}, "{}", "gpu1");
  scheduler_->Goodbye("3acd1d38-fab7", first.get());
  world_.Settle();
  EXPECT_EQ(Text("SELECT error FROM attempts WHERE number = 1"), "worker gpu1 ended");
  // Two workers have the name now, so messages tell them apart.
  const auto second = Connect("72f7b9f8-f5fa", 1, {}, "{}", "gpu1");
  world_.Advance(absl::Minutes(1));
  EXPECT_EQ(Text("SELECT error FROM attempts WHERE number = 2"),
            "worker gpu1 (72f7b9f8) did not renew its lease of 20s");
}

TEST_F(SchedulerTest, ALossAfterARestartNamesAWorkerThatDoesNotComeBack) {
  Submit("s", 1);
  const auto link = Connect("3acd1d38-fab7", 1, {}, "{}", "gpu1");
  world_.steps.clear();
  world_.timed.clear();
  MakeScheduler();
  Recover();
  world_.Advance(absl::Minutes(1));
  EXPECT_EQ(Text("SELECT error FROM attempts WHERE number = 1"),
            "worker gpu1 did not renew its lease of 20s");
}

TEST_F(SchedulerTest, AfterARestartEveryOpenAttemptHasOneFreshLease) {
  Submit("s", 2);
  const auto before = Connect("w", 1);
  const store::Assignment a = before->assignments[0];
  Say(a, 1, StartedEvent(0, 1));
  world_.steps.clear();
  world_.timed.clear();
  world_.Advance(absl::Hours(5));  // the coordinator was down
  MakeScheduler();
  Recover();
  world_.Advance(absl::Seconds(15));
  EXPECT_EQ(Text("SELECT outcome IS NULL FROM attempts"), "1");
  const auto after = Connect("w", 1, {Holding(a)});
  EXPECT_TRUE(after->assignments.empty()) << "its slot is taken";
  world_.Advance(absl::Seconds(15));
  EXPECT_EQ(Text("SELECT outcome IS NULL FROM attempts"), "1");
  Say(a, 2, OneWrong());
  Say(a, 3, SucceededEvent());
  EXPECT_EQ(after->assignments.size(), 1u);
}

}  // namespace
}  // namespace pelab::sched
