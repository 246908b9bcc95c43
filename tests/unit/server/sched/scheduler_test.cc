// The scheduler's promises: dispatch, budgets, quarantine, reconnecting workers.
#include "server/sched/worker_rows.h"
#include "tests/unit/server/sched/scheduler_fixture.h"

namespace pelab::sched {
namespace {

using testing::HasSubstr;

TEST_F(SchedulerTest, FillsSlotsAndRefillsThem) {
  Submit("s", 3);
  const auto link = Connect("w", 2);
  ASSERT_EQ(link->assignments.size(), 2u);
  EXPECT_NE(link->assignments[0].slot, link->assignments[1].slot);
  Succeed(link->assignments[0]);
  ASSERT_EQ(link->assignments.size(), 3u);
  EXPECT_EQ(link->assignments[2].slot, link->assignments[0].slot);
}

TEST_F(SchedulerTest, NothingIsSentBeforeItIsStored) {
  Submit("s", 1);
  world_.disk_full = true;
  const auto link = Connect("w", 1);
  EXPECT_TRUE(link->assignments.empty());
  world_.disk_full = false;
  world_.Advance(absl::Seconds(2));
  ASSERT_EQ(link->assignments.size(), 1u);
  EXPECT_EQ(Text("SELECT count(*) FROM attempts"), "1");
}

TEST_F(SchedulerTest, AnAssignmentThatIsRefusedIsTriedLessAndLessOften) {
  Submit("s", 1);
  world_.store->database().connection().exec(
      "CREATE TRIGGER fails BEFORE INSERT ON attempts BEGIN SELECT json_extract('{', '$'); END");
  const auto link = Connect("w", 1);
  const std::uint64_t before = token_;
  world_.Advance(absl::Minutes(10));
  EXPECT_GE(token_, before + 10) << "it is tried every minute";
  EXPECT_LE(token_, before + 20);
  EXPECT_TRUE(link->assignments.empty());
  world_.store->database().connection().exec("DROP TRIGGER fails");
  world_.Advance(absl::Minutes(2));
  EXPECT_EQ(link->assignments.size(), 1u);
}

TEST_F(SchedulerTest, SweepsShareSlotsFairlyAndPriorityComesFirst) {
  const std::int64_t large = Submit("large", 10);
  const std::int64_t small = Submit("small", 2);
  const std::int64_t urgent = Submit("urgent", 1, 5);
  const auto link = Connect("w", 5);
  std::map<std::int64_t, int> share;
  for (const store::Assignment& a : link->assignments) {
    share[world_.store->database()
              .connection()
              .execAndGet(absl::StrCat("SELECT sweep_id FROM sweep_jobs WHERE job_id = ", a.job_id))
              .getInt64()] += 1;
  }
  EXPECT_EQ(share[urgent], 1);
  EXPECT_EQ(share[large], 2);
  EXPECT_EQ(share[small], 2);
}

TEST_F(SchedulerTest, AFailureWaitsForItsBackOffThenRunsAgainUntilTheBudgetIsSpent) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  Fail(link->assignments[0]);
  EXPECT_EQ(link->assignments.size(), 1u);
  EXPECT_THAT(scheduler_->WaitingReason(1), HasSubstr("back-off"));
  world_.Advance(absl::Milliseconds(400));  // of 500 ms: 1 s times the jitter
  EXPECT_EQ(link->assignments.size(), 1u);
  world_.Advance(absl::Milliseconds(400));
  ASSERT_EQ(link->assignments.size(), 2u);
  Fail(link->assignments[1]);
  world_.Advance(absl::Seconds(2));
  ASSERT_EQ(link->assignments.size(), 3u);
  Fail(link->assignments[2]);
  world_.Advance(absl::Minutes(2));
  EXPECT_EQ(link->assignments.size(), 3u);
  EXPECT_EQ(Text("SELECT state FROM jobs"), "failed");
}

TEST_F(SchedulerTest, ABackOffIsNoLongerIfTheClockIsSetBackJustAfterItWasStored) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  const auto failed =
      Write(link->assignments[0], 1, FailedEvent(state::ErrorKind::kTrainerDied, "it broke"));
  world_.set_by = -absl::Hours(1);
  scheduler_->Stored(failed);
  world_.Advance(absl::Milliseconds(400));  // of 500 ms
  EXPECT_EQ(link->assignments.size(), 1u);
  world_.Advance(absl::Milliseconds(400));
  EXPECT_EQ(link->assignments.size(), 2u);
}

TEST_F(SchedulerTest, AWorkerOnWhichEverythingFailsIsLeftOutWhileOthersWork) {
  Submit("s", 12);
  const auto bad = Connect("bad", 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(bad->assignments.size(), i + 1u);
    Fail(bad->assignments[i]);
    world_.Settle();
  }
  // There is no other worker, so it gets jobs although it is quarantined.
  ASSERT_EQ(bad->assignments.size(), 4u);
  const auto good = Connect("good", 1);
  Succeed(good->assignments[0]);
  Fail(bad->assignments[3]);
  EXPECT_EQ(bad->assignments.size(), 4u);
  Succeed(good->assignments[1]);
  EXPECT_EQ(bad->assignments.size(), 4u);
  EXPECT_EQ(good->assignments.size(), 3u);
  // the quarantine is over, and the good worker has lost its silent attempt
  world_.Advance(absl::Minutes(11));
  EXPECT_GT(bad->assignments.size(), 4u);
}

TEST_F(SchedulerTest, FailuresOfTheSpecDoNotSpeakAgainstTheWorker) {
  Submit("s", 5);
  const auto worker = Connect("w", 1);
  const auto other = Connect("other", 1);
  const auto& busy = worker->assignments.empty() ? other : worker;
  for (int i = 0; i < 3; ++i) Fail(busy->assignments.back(), state::ErrorKind::kOutOfMemory);
  EXPECT_EQ(busy->assignments.size(), 4u);
}

TEST_F(SchedulerTest, CancelsReachQueuedAndRunningJobs) {
  const std::int64_t sweep = Submit("s", 3);
  const auto link = Connect("w", 1);
  const store::Assignment running = link->assignments[0];
  scheduler_->Cancelled(Do<store::Cancelled>(store::CancelSweep{sweep, 1}));
  world_.Settle();
  ASSERT_EQ(link->stops.size(), 1u);
  EXPECT_EQ(link->stops[0], std::make_pair(running.attempt_id, StopReason::kCancelled));
  Submit("next", 1);
  EXPECT_EQ(link->assignments.size(), 1u) << "the slot is taken until the worker confirms";
  Say(running, 1, EndEvent(v1::ATTEMPT_OUTCOME_CANCELLED));
  EXPECT_EQ(link->assignments.size(), 2u);
}

TEST_F(SchedulerTest, ReconnectingSendsWhatDidNotArriveAndTellsWhatIsLost) {
  Submit("s", 2);
  const auto first = Connect("w", 2);
  ASSERT_EQ(first->assignments.size(), 2u);
  Say(first->assignments[0], 1, StartedEvent(0, 1));
  const auto second = Connect("w", 2);
  EXPECT_FALSE(first->closed.ok());
  std::map<std::int64_t, int> sent;
  for (const store::Assignment& a : second->assignments) sent[a.attempt_id] += 1;
  EXPECT_EQ(sent[first->assignments[1].attempt_id], 1) << "never heard of: sent again";
  EXPECT_EQ(sent[first->assignments[0].attempt_id], 0);
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE attempt_id = " +
                 std::to_string(first->assignments[0].attempt_id)),
            "lost");
  EXPECT_EQ(second->assignments.size(), 2u) << "and the lost one's job runs again";
}

// Its programs were replaced before it had begun the job.
TEST_F(SchedulerTest, AWorkerThatComesBackUnableIsNotSentItsJobAgain) {
  Submit("s", 1);
  Connect("w1", 1);
  const auto unable = Connect("w1", 1, {}, R"({"pes": []})");
  EXPECT_TRUE(unable->assignments.empty());
  EXPECT_EQ(Text("SELECT outcome FROM attempts"), "preempted");
  EXPECT_EQ(Text("SELECT lost_attempts FROM jobs"), "0");
  EXPECT_EQ(Connect("w2", 1)->assignments.size(), 1u);
  // It takes what it can run.
  const auto able = Connect("w1", 2);
  Submit("t", 1);
  EXPECT_EQ(able->assignments.size(), 1u);
}

// It connects while an attempt is stored that was planned for its slots of before.
TEST_F(SchedulerTest, AnAttemptForASlotThatIsGoneIsNotSent) {
  Connect("w1", 2);
  world_.disk_hangs = true;
  Submit("s", 2);
  const auto smaller = Connect("w1", 1);
  world_.disk_hangs = false;
  world_.Settle();
  ASSERT_EQ(smaller->assignments.size(), 1u);
  EXPECT_EQ(smaller->assignments[0].slot, 0);
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE slot = 1"), "preempted");
}

TEST_F(SchedulerTest, AWorkerThatGivesAJobBackGetsNoMoreUntilItsNextHello) {
  const std::int64_t sweep = Submit("s", 1);
  const auto first = Connect("w", 1);
  ASSERT_EQ(first->assignments.size(), 1u);
  Say(first->assignments[0], 1, EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED));
  world_.Advance(absl::Seconds(5));
  EXPECT_EQ(first->assignments.size(), 1u)
      << "it is ending: the job would come back again and again";
  EXPECT_EQ(scheduler_->WaitingReason(sweep), "no worker is connected");
  EXPECT_EQ(Connect("w", 1)->assignments.size(), 1u);
}

// Somebody, or the kernel, sends SIGTERM to a trainer alone.
TEST_F(SchedulerTest, ATrainerThatStopsByItselfDoesNotRetireItsWorker) {
  const std::int64_t sweep = Submit("s", 1);
  const auto link = Connect("w", 1);
  ASSERT_EQ(link->assignments.size(), 1u);
  Say(link->assignments[0], 1, StartedEvent(0, 1));
  Say(link->assignments[0], 2, OneWrong());
  Say(link->assignments[0], 3,
      EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED, state::ErrorKind::kTrainerDied, "SIGTERM"));
  world_.Advance(absl::Seconds(1));
  EXPECT_EQ(link->assignments.size(), 2u) << "at once, on the same worker";
  EXPECT_EQ(scheduler_->WaitingReason(sweep), "");
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE number = 1"), "preempted");
}

TEST_F(SchedulerTest, ATrainerThatAlwaysStopsByItselfSpendsTheBudgetOfItsJob) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(link->assignments.size(), i + 1);
    Say(link->assignments[i], 1, StartedEvent(0, 1));
    // The same epoch each time.
    Say(link->assignments[i], 2, OneWrong());
    Say(link->assignments[i], 3,
        EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED, state::ErrorKind::kTrainerDied, "it stopped"));
    world_.Advance(absl::Seconds(10));  // longer than each back-off
  }
  ASSERT_EQ(link->assignments.size(), 4u) << "the first attempt had advanced the job";
  Say(link->assignments[3], 1,
      EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED, state::ErrorKind::kTrainerDied, "it stopped"));
  world_.Advance(absl::Minutes(2));
  EXPECT_EQ(link->assignments.size(), 4u);
  EXPECT_EQ(Text("SELECT state FROM jobs"), "failed");
  EXPECT_EQ(Text("SELECT error FROM jobs"), "it stopped; it had stored no new epoch");
}

TEST_F(SchedulerTest, TellsHowLongAWorkerIsSilentAndWhenItsJobsAreGivenAway) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  world_.Advance(absl::Seconds(5));
  scheduler_->Heartbeat("w", link.get(), {Holding(link->assignments.at(0))});
  world_.Advance(absl::Seconds(8));
  const std::vector<WorkerStatus> statuses = scheduler_->Workers();
  ASSERT_EQ(statuses.size(), 1u);
  EXPECT_EQ(statuses[0].silent, absl::Seconds(8));
  EXPECT_EQ(statuses[0].give_up_left, absl::Seconds(12));
  v1::ListWorkersResponse rows;
  rows.add_workers()->set_worker_id("w");
  rows.add_workers()->set_worker_id("other");
  AddWorkerStatuses(statuses, absl::FromUnixMillis(1'000'000), rows);
  EXPECT_EQ(rows.workers(0).last_seen_at_ms(), 992'000);
  EXPECT_EQ(rows.workers(0).silent_ms(), 8000u);
  EXPECT_EQ(rows.workers(0).lease_left_ms(), 12'000u);
  EXPECT_FALSE(rows.workers(1).has_silent_ms());
}

TEST_F(SchedulerTest, AWorkerThatIsGivenUpWasSeenWhenItWasHeard) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  world_.Advance(absl::Seconds(5));
  scheduler_->Heartbeat("w", link.get(), {Holding(link->assignments.at(0))});
  const std::int64_t heard = absl::ToUnixMillis(world_.Wall());
  world_.Advance(absl::Seconds(50));
  scheduler_->Disconnected("w", link.get());
  world_.Settle();
  EXPECT_EQ(Text("SELECT state FROM workers"), "offline");
  EXPECT_EQ(Text("SELECT last_seen_at FROM workers"), absl::StrCat(heard));
}

TEST_F(SchedulerTest, AnAttemptLeftOverByADeadDaemonDoesNotKeepItsSuccessorIdle) {
  Submit("s", 2);
  const auto first = Connect("w", 1);
  store::Held left_over = Holding(first->assignments[0]);
  left_over.slot = -1;
  const auto second = Connect("w", 1, {left_over});
  Say(first->assignments[0], 1, EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED));
  EXPECT_EQ(second->assignments.size(), 1u);
}

TEST_F(SchedulerTest, AGoodbyeFreesJobsAtOnce) {
  Submit("s", 1);
  const auto link = Connect("w", 1);
  scheduler_->Goodbye("w", link.get());
  world_.Settle();
  EXPECT_EQ(Text("SELECT state FROM jobs"), "queued");
  EXPECT_EQ(Text("SELECT state FROM workers"), "offline");
  EXPECT_EQ(Text("SELECT lost_attempts FROM jobs"), "0") << "the worker has not seen it";
  EXPECT_EQ(Text("SELECT outcome FROM attempts"), "preempted");
}

TEST_F(SchedulerTest, AWorkerThatEndsBeforeItStartsAJobLosesNothing) {
  Submit("s", 1);
  for (int i = 0; i < 6; ++i) {  // one more than a job may be lost
    const auto link = Connect(absl::StrCat("w", i), 1);
    ASSERT_EQ(link->assignments.size(), 1u) << i;
    v1::Event end = EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED);
    end.mutable_finished()->set_never_started(true);
    Say(link->assignments[0], 1, end);
    EXPECT_EQ(Text("SELECT state || ' ' || lost_attempts FROM jobs"), "queued 0");
  }
}

TEST_F(SchedulerTest, SaysWhyJobsWait) {
  const std::int64_t gpu = Submit("gpu", 1, 0, "gpu");
  EXPECT_EQ(scheduler_->WaitingReason(gpu), "no worker is connected");
  const auto link = Connect("w", 1);
  EXPECT_THAT(scheduler_->WaitingReason(gpu), HasSubstr("a cpu, not a gpu"));
  Submit("running", 1);
  const std::int64_t waiting = Submit("waiting", 1);
  EXPECT_THAT(scheduler_->WaitingReason(waiting), HasSubstr("busy with another sweep"));
  EXPECT_EQ(scheduler_->WaitingReason(99), "");
}

}  // namespace
}  // namespace pelab::sched
