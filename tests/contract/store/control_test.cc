// Pausing, priorities, retries, further seeds, draining, and cancelling very large sweeps.
#include <algorithm>
#include <numeric>

#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using state::Outcome;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ControlTest : public StoreTest {
 protected:
  std::vector<NewCell> Cells(int count, const std::string& prefix = "k") {
    std::vector<NewCell> cells;
    for (int i = 0; i < count; ++i) cells.push_back(Cell(i, absl::StrCat(prefix, i)));
    return cells;
  }
  void Fail(std::int64_t job_id, std::uint64_t token) {
    Attempt attempt = Assign(job_id, token);
    Event(attempt.Next(FailedEvent(state::ErrorKind::kBadSpec, "bad")));
    ASSERT_EQ(JobState(job_id), "failed");
  }
  bool MayStart(std::int64_t job_id) {
    AddWorker();
    const auto created = Do<AttemptCreated>(
        CreateAttempt{.job_id = job_id, .worker_id = "w", .slot = 0, .device = "cpu", .token = 99});
    EXPECT_NE(created.assignment != nullptr, created.paused);
    return created.assignment != nullptr;
  }
  SweepControlled Pause(std::int64_t sweep, bool paused = true) {
    return Do<SweepControlled>(ControlSweep{.sweep_id = sweep, .paused = paused});
  }
  struct Recovered {
    std::vector<RecoveredSweep> sweeps;
    std::vector<std::int64_t> ready;
    std::vector<ExpandingSweep> expanding;
  };
  Recovered Recover() {
    Recovered found;
    EXPECT_TRUE(store_
                    ->Recover([&](auto sweep) { found.sweeps.push_back(sweep); },
                              [&](auto job) { found.ready.push_back(job.job_id); }, [](auto) {},
                              [&](auto sweep) { found.expanding.push_back(sweep); })
                    .ok());
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, ControlTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(ControlTest, APausedSweepStartsNothing) {
  const std::int64_t sweep = Submit("a", Cells(2));
  Attempt running = Assign(1);
  const SweepControlled paused = Pause(sweep);
  EXPECT_TRUE(paused.found && paused.changed && paused.live);
  EXPECT_EQ(paused.settings, (SweepSettings{sweep, 0, true}));
  EXPECT_FALSE(Pause(sweep).changed);
  EXPECT_FALSE(MayStart(2)) << "though the scheduler asked before it heard of the pause";
  EXPECT_EQ(JobState(2), "queued");
  // A running job continues to its end.
  Train(running, 0, 3);
  Event(running.Next(Matrix()));
  EXPECT_EQ(Event(running.Next(SucceededEvent())).change->outcome, Outcome::kSucceeded);
  EXPECT_EQ(SweepState(sweep), "active");
  EXPECT_TRUE(Pause(sweep, false).changed);
  EXPECT_FALSE(Pause(sweep, false).changed);
  EXPECT_TRUE(MayStart(2));
  EXPECT_FALSE(Pause(99).found);
}

TEST_P(ControlTest, AJobThatAnotherSweepClaimsRunsForThatOne) {
  const std::int64_t first = Submit("a", Cells(2));
  Pause(first);
  const std::int64_t second = Submit("b", {Cell(0, "k0")});
  ASSERT_THAT(slice_.ready, SizeIs(1));
  EXPECT_EQ(slice_.ready[0].sweep_id, first);
  EXPECT_THAT(slice_.ready[0].others, ElementsAre(Claim{second, 0}));
  EXPECT_FALSE(MayStart(2));
  EXPECT_TRUE(MayStart(1));
}

TEST_P(ControlTest, ASweepThatHasEndedCannotBePausedAndStaysUnpausedWhenItIsActiveAgain) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")});
  Pause(sweep);
  Do<Cancelled>(CancelJob{1, 4000});  // the sweep is paused and still finishes
  EXPECT_EQ(SweepState(sweep), "finished");
  EXPECT_EQ(Text("SELECT paused FROM sweeps"), "0");
  const SweepControlled late = Pause(sweep);
  EXPECT_FALSE(late.changed || late.live || late.settings.paused);
  EXPECT_EQ(Do<Retried>(RetryJob{.job_id = 1, .now = 5000}).queued, 1);
  EXPECT_TRUE(MayStart(1));
}

TEST_P(ControlTest, APauseAndAPriorityAreOneRowAndOutliveARestart) {
  const std::int64_t sweep = Submit("a", Cells(300), false, 3);
  const std::string before = Text("SELECT total_changes()");
  Do<SweepControlled>(ControlSweep{.sweep_id = sweep, .paused = true, .priority = -7});
  EXPECT_EQ(std::stoi(Text("SELECT total_changes()")) - std::stoi(before), 1);
  if (GetParam()) Open();
  const Recovered found = Recover();
  ASSERT_THAT(found.sweeps, SizeIs(1));
  EXPECT_EQ(found.sweeps[0].settings, (SweepSettings{sweep, -7, true}));
  EXPECT_THAT(found.ready, SizeIs(300));
}

TEST_P(ControlTest, PausingWorksWhileTheSweepExpands) {
  const auto stored = Do<SweepStored>(SubmitSweep{.name = "s", .client_token = "a", .cells = 2});
  EXPECT_TRUE(Pause(stored.sweep_id).changed);
  const auto slice = Do<SliceStored>(
      ExpandSlice{.sweep_id = stored.sweep_id, .from = 0, .next = 1, .cells = {Cell(0, "k0")}});
  EXPECT_TRUE(slice.applied);
  EXPECT_THAT(slice.sweep_settings, ElementsAre(SweepSettings{stored.sweep_id, 0, true}));
  EXPECT_FALSE(MayStart(1));
}

TEST_P(ControlTest, RetryQueuesFailedJobsWithFreshBudgetsAndReopensTheSweep) {
  const std::int64_t sweep = Submit("a", Cells(3), false, 0, "[]");
  Fail(1, 11);
  Attempt good = Assign(2, 12);
  Train(good, 0, 3);
  Event(good.Next(SucceededEvent()));
  Fail(3, 13);
  EXPECT_EQ(SweepState(sweep), "finished");
  const auto retried = Do<Retried>(RetrySlice{.sweep_id = sweep, .now = 6000});
  EXPECT_EQ(retried.refused, "");
  EXPECT_EQ(retried.queued, 2);
  EXPECT_EQ(retried.nothing, 1);
  EXPECT_FALSE(retried.next.has_value());
  EXPECT_THAT(retried.jobs.ready, SizeIs(2));
  EXPECT_THAT(retried.jobs.sweep_settings, ElementsAre(SweepSettings{sweep, 0, false}));
  EXPECT_EQ(SweepState(sweep), "active");
  EXPECT_EQ(Text("SELECT failed_attempts, lost_attempts, error IS NULL FROM jobs WHERE job_id = 1"),
            "0 0 1");
  EXPECT_EQ(Do<Retried>(RetrySlice{.sweep_id = sweep, .now = 6000}).queued, 0) << "idempotent";
  for (const std::int64_t job : {1, 3}) {
    Attempt again = Assign(job, 20 + job);
    Train(again, 0, 3);
    Event(again.Next(SucceededEvent()));
  }
  EXPECT_EQ(SweepState(sweep), "finished");
  EXPECT_EQ(Text("SELECT count(*) FROM attempts"), "5") << "nothing is deleted";
}

TEST_P(ControlTest, EverySweepThatClaimsARetriedJobWaitsForItAgain) {
  const std::int64_t first = Submit("a", Cells(2), false, 0, "[]");
  Fail(1, 11);
  Fail(2, 12);
  const std::int64_t second = Submit("b", {Cell(0, "k1"), Cell(1, "other")}, false, 4, "[]");
  Do<Cancelled>(CancelJob{3, 4000});
  EXPECT_EQ(SweepState(second), "finished");
  const auto retried = Do<Retried>(RetrySlice{.sweep_id = first, .now = 6000});
  EXPECT_EQ(retried.queued, 2);
  EXPECT_THAT(retried.jobs.sweep_settings,
              ElementsAre(SweepSettings{first, 0, false}, SweepSettings{second, 4, false}));
  EXPECT_EQ(SweepState(second), "active");
  EXPECT_EQ(Do<Retried>(RetrySlice{.sweep_id = second, .now = 7000}).queued, 0);
  Fail(1, 14);
  EXPECT_EQ(SweepState(first), "active") << "job 2 is queued";
  Fail(2, 15);
  EXPECT_EQ(SweepState(first), "finished");
  EXPECT_EQ(SweepState(second), "finished");
}

TEST_P(ControlTest, ARetryCountsWhatIsOpenAlready) {
  const std::int64_t sweep = Submit("a", Cells(2), false, 0, "[]");
  Fail(1, 11);
  Fail(2, 12);
  EXPECT_EQ(Do<Retried>(RetryJob{.job_id = 1, .now = 6000}).queued, 1);
  EXPECT_EQ(SweepState(sweep), "active");
  if (GetParam()) Open();
  EXPECT_EQ(Do<Retried>(RetryJob{.job_id = 2, .now = 6000}).queued, 1);
  Fail(1, 13);
  EXPECT_EQ(SweepState(sweep), "active");
  Fail(2, 14);
  EXPECT_EQ(SweepState(sweep), "finished");
}

TEST_P(ControlTest, RetryOfOneJobTakesACancelledOneBack) {
  const std::int64_t sweep = Submit("a", Cells(2), false, 0, "[]");
  Attempt stopping = Assign(1);
  Do<Cancelled>(CancelJob{1, 4000});
  EXPECT_EQ(Do<Retried>(RetryJob{.job_id = 1, .failed_only = true, .now = 5000}).nothing, 1);
  const auto retried = Do<Retried>(RetryJob{.job_id = 1, .now = 5000});
  EXPECT_EQ(retried.queued, 1);
  EXPECT_THAT(retried.jobs.superseded, ElementsAre(stopping.id));
  EXPECT_EQ(JobState(1), "queued");
  EXPECT_EQ(Do<Retried>(RetryJob{.job_id = 1, .now = 5000}).nothing, 1);
  // The sweep waits for the job again.
  Do<Cancelled>(CancelJob{2, 4000});
  EXPECT_EQ(SweepState(sweep), "active");
  Do<Cancelled>(CancelSweep{sweep, 4000});
  EXPECT_THAT(Do<Retried>(RetryJob{.job_id = 1, .now = 5000}).refused,
              HasSubstr("every sweep that has it is cancelled; submit one of them again"));
  EXPECT_THAT(Do<Retried>(RetrySlice{.sweep_id = sweep, .now = 1}).refused,
              HasSubstr("submit its document again"));
  EXPECT_THAT(Do<Retried>(RetrySlice{.sweep_id = 99, .now = 1}).refused, HasSubstr("no sweep 99"));
  EXPECT_EQ(JobState(1), "cancelled");
}

TEST_P(ControlTest, RetryIsCutIntoSlices) {
  constexpr int kJobs = 450;
  const std::int64_t sweep = Submit("a", Cells(kJobs), false, 0, "[]");
  Text("UPDATE jobs SET state = 'failed'");
  Text("UPDATE sweeps SET state = 'finished'");
  if (GetParam()) Open();
  std::int64_t from = 0;
  std::vector<std::int64_t> queued;
  for (;;) {
    const auto part = Do<Retried>(RetrySlice{.sweep_id = sweep, .from = from, .now = 1});
    queued.push_back(part.queued);
    if (!part.next) break;
    from = *part.next;
  }
  EXPECT_THAT(queued, ElementsAre(200, 200, 50));
  EXPECT_EQ(Text("SELECT count(*) FROM jobs WHERE state = 'queued'"), absl::StrCat(kJobs));
}

TEST_P(ControlTest, AnExtensionGoesOnWhereTheSweepEnded) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0"), Cell(1, "k1")}, false, 0, "[]");
  for (const std::int64_t job : {1, 2}) {
    Attempt attempt = Assign(job, job);
    Train(attempt, 0, 3);
    Event(attempt.Next(SucceededEvent()));
  }
  EXPECT_EQ(SweepState(sweep), "finished");
  ExtendSweep extend{.sweep_id = sweep, .known = 0, .seeds = "5..6", .cells = 4};
  const auto extended = Do<SweepExtended>(extend);
  EXPECT_TRUE(extended.applied);
  EXPECT_EQ(extended.expanded, 2u);
  EXPECT_EQ(SweepState(sweep), "expanding");
  EXPECT_FALSE(Do<SweepExtended>(extend).applied) << "it has changed since it was looked at";
  if (GetParam()) Open();
  const Recovered found = Recover();
  ASSERT_THAT(found.expanding, SizeIs(1));
  EXPECT_THAT(found.expanding[0].extensions, ElementsAre("5..6"));
  EXPECT_EQ(found.expanding[0].expanded_cells, 2u);
  const auto slice = Do<SliceStored>(ExpandSlice{.sweep_id = sweep,
                                                 .from = 2,
                                                 .next = 4,
                                                 .last = true,
                                                 .cells = {Cell(2, "k0"), Cell(3, "k3")}});
  EXPECT_THAT(slice.ready, SizeIs(1)) << "what is stored is not trained again";
  EXPECT_EQ(SweepState(sweep), "active");
  Attempt attempt = Assign(3, 33);
  Train(attempt, 0, 3);
  Event(attempt.Next(SucceededEvent()));
  EXPECT_EQ(SweepState(sweep), "finished");
  Do<Cancelled>(CancelSweep{Submit("b", {Cell(0, "z")}), 1});
  EXPECT_FALSE(Do<SweepExtended>(ExtendSweep{.sweep_id = 2, .seeds = "1", .cells = 2}).applied);
}

TEST_P(ControlTest, ASweepExtendedWhileItExpandsIsNotDoneBeforeItsNewCellsAre) {
  const auto stored = Do<SweepStored>(SubmitSweep{.name = "s", .client_token = "a", .cells = 2});
  const std::int64_t sweep = stored.sweep_id;
  Do<SliceStored>(ExpandSlice{.sweep_id = sweep, .from = 0, .next = 1, .cells = {Cell(0, "k0")}});
  EXPECT_EQ(Do<SweepExtended>(ExtendSweep{.sweep_id = sweep, .seeds = "7", .cells = 3}).expanded,
            1u);
  // The last slice of the original document.
  Do<SliceStored>(
      ExpandSlice{.sweep_id = sweep, .from = 1, .next = 2, .last = true, .cells = {Cell(1, "k1")}});
  EXPECT_EQ(SweepState(sweep), "expanding");
  // An expander that starts from a stale position is told the current one.
  ExpandSlice stale{.sweep_id = sweep, .from = 1, .next = 3, .last = true};
  EXPECT_FALSE(Do<SliceStored>(stale).applied);
  EXPECT_EQ(Do<SliceStored>(stale).resume_at, 2u);
  Do<SliceStored>(
      ExpandSlice{.sweep_id = sweep, .from = 2, .next = 3, .last = true, .cells = {Cell(2, "k2")}});
  EXPECT_EQ(SweepState(sweep), "active");
}

TEST_P(ControlTest, CancellingALargeSweepStopsItAtOnceAndDropsItsJobsInSlices) {
  constexpr int kJobs = 5000;
  const std::int64_t sweep = Submit("a", Cells(kJobs), false, 0, "[]");
  const std::int64_t other = Submit("b", {Cell(0, "k4998")}, false, 0, "[]");
  Attempt running = Assign(4000);
  auto cancelled = Do<Cancelled>(CancelSweep{sweep, 4000});
  EXPECT_TRUE(cancelled.more);
  EXPECT_EQ(cancelled.sweep_id, sweep);
  EXPECT_THAT(cancelled.attempts, ElementsAre(running.id)) << "what runs is stopped first";
  EXPECT_EQ(SweepState(sweep), "cancelled");
  EXPECT_EQ(JobState(4500), "queued");
  EXPECT_FALSE(MayStart(4500)) << "but it never starts";
  std::size_t jobs = cancelled.jobs.size();
  std::int64_t claims = cancelled.claims_withdrawn;
  int slices = 0;
  while (cancelled.more) {
    if (GetParam() && slices == 3) {  // a restart continues the work
      Open();
      const Recovered found = Recover();
      EXPECT_THAT(found.ready, ElementsAre(4999)) << "the other sweep's";
      ASSERT_THAT(found.sweeps, SizeIs(2));
      EXPECT_TRUE(found.sweeps[0].dropping);
      EXPECT_FALSE(found.sweeps[1].dropping);
    }
    cancelled = Do<Cancelled>(DropSlice{sweep, 4000});
    EXPECT_LE(cancelled.jobs.size(), 200u);
    jobs += cancelled.jobs.size();
    claims += cancelled.claims_withdrawn;
    ASSERT_LT(++slices, 100);
  }
  EXPECT_EQ(jobs, kJobs - 1u);
  EXPECT_EQ(claims, kJobs);
  EXPECT_EQ(Text("SELECT count(*) FROM jobs WHERE state = 'queued'"), "1");
  EXPECT_EQ(SweepState(other), "active");
  EXPECT_FALSE(Do<Cancelled>(DropSlice{sweep, 4000}).more);
  EXPECT_THAT(Do<Cancelled>(CancelSweep{sweep, 4000}).jobs, IsEmpty());
  EXPECT_TRUE(MayStart(4999));
}

TEST_P(ControlTest, ACancelWithdrawsOpenAttemptsInTheSameTransaction) {
  constexpr int kJobs = 2000;
  const std::int64_t sweep = Submit("a", Cells(kJobs), false, 0, "[]");
  for (int job = 1; job <= kJobs; ++job) Assign(job, 1000 + job);
  const auto cancelled = Do<Cancelled>(CancelSweep{sweep, 4000});
  EXPECT_THAT(cancelled.attempts, SizeIs(kJobs));
  EXPECT_THAT(cancelled.jobs, SizeIs(kJobs));
  EXPECT_EQ(cancelled.claims_withdrawn, kJobs);
  EXPECT_FALSE(Do<Cancelled>(DropSlice{sweep, 4000}).more);
  EXPECT_EQ(Text("SELECT count(*) FROM jobs WHERE state = 'cancelled'"), absl::StrCat(kJobs));
}

TEST_P(ControlTest, AWorkerDrainsUntilItResumes) {
  AddWorker("w");
  const auto drained = Do<WorkerDrained>(DrainWorker{"w", v1::Drain::CHECKPOINT});
  EXPECT_TRUE(drained.changed);
  EXPECT_EQ(drained.busy_slots, 0);
  EXPECT_FALSE(Do<WorkerDrained>(DrainWorker{"w", v1::Drain::CHECKPOINT}).changed);
  EXPECT_EQ(Text("SELECT state, drain FROM v_workers"), "drained checkpoint");
  Submit("a", {Cell(0, "k0")});
  Assign(1);  // the drain survives the worker's hello
  EXPECT_EQ(Text("SELECT state, busy_slots FROM v_workers"), "draining 1");
  Submit("b", {Cell(0, "k1")});
  Assign(2);  // to the same slot: one trainer takes both
  EXPECT_EQ(Text("SELECT state, busy_slots FROM v_workers"), "draining 1");
  const auto busy = Do<WorkerDrained>(DrainWorker{"w", v1::Drain::CHECKPOINT});
  EXPECT_EQ(busy.busy_slots, 1);
  EXPECT_EQ(busy.attempts, 2);
  Do<Nothing>(WorkerSeen{"w", "offline", 3000});
  EXPECT_EQ(Text("SELECT state, drain FROM v_workers"), "offline checkpoint");
  if (GetParam()) Open();
  const auto hello =
      Do<WorkerStored>(WorkerHello{.worker_id = "w", .host = "h", .slots_json = "[]"});
  EXPECT_EQ(hello.drain, v1::Drain::CHECKPOINT);
  EXPECT_TRUE(Do<WorkerDrained>(DrainWorker{"h", v1::Drain::RESUME}).changed) << "by its host";
  EXPECT_EQ(Text("SELECT state FROM v_workers"), "online");
  EXPECT_THAT(Do<WorkerDrained>(DrainWorker{"x", v1::Drain::RESUME}).refused,
              HasSubstr("no worker \"x\""));
  AddWorker("w2");
  EXPECT_THAT(Do<WorkerDrained>(DrainWorker{"h", v1::Drain::KILL}).refused,
              HasSubstr("\"h\" names 2 workers; give the first 6"));
}

TEST_P(ControlTest, AWorkerIsNamedByItsName) {
  const auto add = [&](const std::string& id, const std::string& name) {
    Do<WorkerStored>(WorkerHello{.worker_id = id, .name = name, .host = "box", .slots_json = "[]"});
  };
  add("0f3a77c2-1", "left");
  add("9b1c20d4-2", "right");
  add("9b1c20d4-3", "");
  EXPECT_EQ(Text("SELECT name FROM v_workers ORDER BY worker_id"), "left right box");
  EXPECT_EQ(Do<WorkerDrained>(DrainWorker{"left", v1::Drain::KILL}).worker_id, "0f3a77c2-1");
  EXPECT_EQ(Do<WorkerDrained>(DrainWorker{"box", v1::Drain::KILL}).worker_id, "9b1c20d4-3")
      << "its name, which goes before the host of others";
  EXPECT_EQ(Do<WorkerDrained>(DrainWorker{"0f3a", v1::Drain::KILL}).refused,
            "\"0f3a\" is too short for an id; give its first 6 characters or more, or the worker's "
            "name");
  EXPECT_EQ(Do<WorkerDrained>(DrainWorker{"9b1c20", v1::Drain::KILL}).refused,
            "\"9b1c20\" names 2 workers; give the first 10 characters of an id: 9b1c20d4-2, "
            "9b1c20d4-3");
}

TEST_P(ControlTest, AWorkerIsNamedByTheStartOfItsId) {
  AddWorker("edb70b0f-1");
  AddWorker("edb70b0f-2");
  EXPECT_EQ(Do<WorkerDrained>(DrainWorker{"edb70b0f-2", v1::Drain::KILL}).worker_id, "edb70b0f-2");
  EXPECT_THAT(Do<WorkerDrained>(DrainWorker{"edb70b0f", v1::Drain::KILL}).refused,
              HasSubstr("names 2 workers"));
  AddWorker("ff96c2bf-1");
  EXPECT_EQ(Do<WorkerDrained>(DrainWorker{"ff96c2", v1::Drain::FINISH}).worker_id, "ff96c2bf-1");
  EXPECT_THAT(Do<WorkerDrained>(DrainWorker{"ff96c", v1::Drain::KILL}).refused,
              HasSubstr("too short"));
}

}  // namespace
}  // namespace pelab::store
