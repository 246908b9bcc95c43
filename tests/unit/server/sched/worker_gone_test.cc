// Workers that the batch system says are gone.
#include "tests/unit/server/sched/scheduler_fixture.h"

namespace pelab::sched {
namespace {

// The batch system says so long before the lease runs out.
TEST_F(SchedulerTest, AWorkerThatIsGoneLosesItsJobsAtOnce) {
  Submit("s", 2);
  const auto link = Connect("id-1", 2, {}, "{}", "pelab-gpu-7");
  Say(link->assignments[0], 1, StartedEvent(0, 1));
  const auto other = Connect("id-2", 1, {}, "{}", "pelab-gpu-8");
  EXPECT_EQ(scheduler_->WorkerGone("pelab-gpu-7", "allocation 7 is over: NODE_FAIL"), 2);
  world_.Settle();
  EXPECT_EQ(link->closed.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(other->closed.ok());
  EXPECT_EQ(Text("SELECT group_concat(state) FROM (SELECT state FROM workers ORDER BY worker_id)"),
            "offline,online");
  EXPECT_EQ(Text("SELECT outcome || ': ' || error FROM attempts WHERE attempt_id = 1"),
            "lost: worker pelab-gpu-7 is gone: allocation 7 is over: NODE_FAIL");
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE attempt_id = 2"), "preempted")
      << "the worker has not seen it, so it costs the job nothing";
  EXPECT_EQ(other->assignments.size(), 1u) << "they go elsewhere";
  EXPECT_EQ(scheduler_->WorkerGone("pelab-gpu-7", "again"), 0);
  EXPECT_EQ(scheduler_->WorkerGone("nobody", "at all"), 0);
}

// It lives all the same: it comes back, is told what to drop, and gets new jobs.
TEST_F(SchedulerTest, AWorkerThatWasSaidToBeGoneComesBack) {
  Submit("s", 1);
  const auto link = Connect("id-1", 1, {}, "{}", "pelab-gpu-7");
  Say(link->assignments[0], 1, StartedEvent(0, 1));
  scheduler_->WorkerGone("pelab-gpu-7", "allocation 7 is over");
  world_.Settle();
  scheduler_->Disconnected("id-1", link.get());  // its stream ends after all that
  const store::Held held{link->assignments[0].attempt_id, link->assignments[0].token, 0};
  const auto hello = Do<store::WorkerStored>(store::WorkerHello{
      .worker_id = "id-1", .name = "pelab-gpu-7", .slots_json = "[]", .held = {held}});
  ASSERT_EQ(hello.held.size(), 1u);
  EXPECT_FALSE(hello.held[0].accepted);
  const auto back = Connect("id-1", 1, {}, "{}", "pelab-gpu-7");
  ASSERT_EQ(back->assignments.size(), 1u);
  EXPECT_NE(back->assignments[0].attempt_id, held.attempt_id);
  // What it says about the old attempt changes nothing.
  Say(link->assignments[0], 2, OneWrong());
  EXPECT_EQ(Text("SELECT count(*) FROM stored_epochs"), "0");
  EXPECT_EQ(Text("SELECT epochs_done FROM jobs"), "0");
}

// The report comes while an assignment is being stored, so the worker never gets it.
TEST_F(SchedulerTest, AnAssignmentThatIsBeingStoredForAWorkerThatIsGoneGoesElsewhere) {
  for (const bool says_goodbye : {false, true}) {
    const std::string worker = says_goodbye ? "id-2" : "id-1";
    const auto link = Connect(worker, 1, {}, "{}", "pelab-gpu-7");
    world_.disk_hangs = true;
    Submit(worker, 1);
    if (says_goodbye) {
      scheduler_->Goodbye(worker, link.get());
    } else {
      EXPECT_EQ(scheduler_->WorkerGone("pelab-gpu-7", "allocation 7 is over: NODE_FAIL"), 0);
    }
    world_.disk_hangs = false;
    world_.Settle();
    EXPECT_EQ(link->assignments.size(), 0u);
    EXPECT_EQ(Text("SELECT outcome FROM attempts ORDER BY attempt_id DESC LIMIT 1"), "preempted");
    EXPECT_EQ(Text("SELECT lost_attempts FROM jobs ORDER BY job_id DESC LIMIT 1"), "0");
    const auto other = Connect("other", 1);
    ASSERT_EQ(other->assignments.size(), 1u) << "at once, not after a lease";
    Succeed(other->assignments[0]);
    scheduler_->Goodbye("other", other.get());
    world_.Settle();
  }
}

// What it said before does not keep its attempt, even if the end cannot be stored at first.
TEST_F(SchedulerTest, AResultThatIsBeingStoredDoesNotPutOffTheEnd) {
  Submit("s", 1);
  const auto link = Connect("id-1", 1, {}, "{}", "pelab-gpu-7");
  Say(link->assignments[0], 1, StartedEvent(0, 1));
  EXPECT_EQ(scheduler_->WorkerGone("pelab-gpu-7", "allocation 7 is over"), 1);
  world_.disk_full = true;  // for the end, which is stored after the epoch
  Say(link->assignments[0], 2, OneWrong());
  EXPECT_EQ(Text("SELECT outcome IS NULL FROM attempts"), "1");
  world_.disk_full = false;
  world_.Advance(absl::Seconds(2));
  EXPECT_EQ(Text("SELECT outcome || ': ' || error FROM attempts"),
            "lost: worker pelab-gpu-7 is gone: allocation 7 is over");
  EXPECT_EQ(Text("SELECT epochs_done FROM jobs"), "1") << "the epoch counts";
}

TEST_F(SchedulerTest, AWorkerThatComesBackMeanwhileGetsTheJob) {
  Connect("id-1", 1, {}, "{}", "pelab-gpu-7");
  world_.disk_hangs = true;
  Submit("s", 1);
  scheduler_->WorkerGone("pelab-gpu-7", "allocation 7 is over");
  // It is back before the assignment is stored.
  const auto back = Connect("id-1", 1, {}, "{}", "pelab-gpu-7");
  world_.disk_hangs = false;
  world_.Settle();
  ASSERT_EQ(back->assignments.size(), 1u);
  EXPECT_EQ(Text("SELECT count(outcome) FROM attempts"), "0");
  // It is back before the end is stored.
  world_.disk_hangs = true;
  EXPECT_EQ(scheduler_->WorkerGone("pelab-gpu-7", "allocation 7 is over"), 1);
  const auto again = Connect("id-1", 1, {}, "{}", "pelab-gpu-7");
  world_.disk_hangs = false;
  world_.Settle();
  EXPECT_EQ(again->assignments.size(), 1u) << "it did not give the job back by itself";
  EXPECT_EQ(Text("SELECT group_concat(coalesce(outcome, 'open')) FROM attempts"), "preempted,open");
}

}  // namespace
}  // namespace pelab::sched
