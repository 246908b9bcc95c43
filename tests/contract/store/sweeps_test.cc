// Submitting, claims and cancelling.
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using state::JobState;
using state::Outcome;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SweepsTest : public StoreTest {
 protected:
  // Submits one job, which demands so much memory.
  std::int64_t SubmitWithMemory(const std::string& token, const std::string& key,
                                std::uint64_t bytes) {
    resources_json_ = absl::StrCat(R"({"device":"any","memory_bytes":)", bytes, "}");
    NewCell cell = Cell(0, key);
    cell.requirement.memory_bytes = bytes;
    return Submit(token, {cell});
  }
  std::string Memory() { return Text("SELECT memory_bytes FROM jobs WHERE job_id = 1"); }
};
INSTANTIATE_TEST_SUITE_P(Backends, SweepsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(SweepsTest, SubmittingCountsWhatIsThere) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2"), Cell(3, "k3")}, false, 0, "[]");
  Attempt done = Assign(1);
  Train(done, 0, 3);
  Event(done.Next(SucceededEvent()));
  Attempt failed = Assign(2);
  Event(failed.Next(FailedEvent(state::ErrorKind::kBadSpec, "bad")));
  Do<Cancelled>(CancelJob{3, 4000});
  const std::int64_t second = Submit("b", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2"),
                                           Cell(3, "k3"), Cell(4, "k4"), Cell(5, "k4")});
  EXPECT_EQ(Text(absl::StrCat("SELECT new_jobs, stored_jobs, in_flight_jobs, failed_earlier_jobs "
                              "FROM sweeps WHERE sweep_id = ",
                              second)),
            "2 1 1 1");  // k2 was cancelled; k4 is new and counted once
  std::vector<std::int64_t> ready;
  for (const ReadyJob& job : slice_.ready) ready.push_back(job.job_id);
  EXPECT_THAT(ready, ElementsAre(3, 4, 5));  // job 4 is queued already and needs an analysis now
  EXPECT_EQ(JobState(3), "queued");
  EXPECT_EQ(JobState(2), "failed");
}

TEST_P(SweepsTest, FreshMakesANewGenerationAndViewsShowTheLatestThatSucceeded) {
  Submit("a", {Cell(0, "k0")}, false, 0, "[]");
  Attempt done = Assign(1);
  Train(done, 0, 3);
  Event(done.Next(SucceededEvent()));
  Submit("b", {Cell(0, "k0"), Cell(1, "k0")}, /*fresh=*/true, 0, "[]");
  EXPECT_EQ(Text("SELECT count(*), max(generation) FROM jobs"), "2 2");
  EXPECT_EQ(Text("SELECT job_id FROM v_jobs"), "1");
  Attempt again = Assign(2, 5);
  Train(again, 0, 3);
  Event(again.Next(SucceededEvent()));
  EXPECT_EQ(Text("SELECT job_id, generation FROM v_jobs"), "2 2");
}

TEST_P(SweepsTest, AJobStopsWhenNoLiveSweepClaimsIt) {
  const std::int64_t first = Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  const std::int64_t second = Submit("b", {Cell(0, "k1"), Cell(1, "k2")});
  Attempt running = Assign(1);
  const auto cancelled = Do<Cancelled>(CancelSweep{first, 4000});
  EXPECT_EQ(cancelled.claims_withdrawn, 2);
  EXPECT_THAT(cancelled.jobs, ElementsAre(1));
  EXPECT_THAT(cancelled.attempts, ElementsAre(running.id));
  EXPECT_EQ(JobState(1), "cancelled");
  EXPECT_EQ(JobState(2), "queued");
  EXPECT_EQ(SweepState(first), "cancelled");
  EXPECT_EQ(Do<Cancelled>(CancelSweep{first, 4000}).claims_withdrawn, 0);  // idempotent
  // The worker confirms. The epochs that it stored meanwhile are kept.
  Event(running.Next(StartedEvent(0, 3)));
  const EventStored end = Event(running.Next(EndEvent(v1::ATTEMPT_OUTCOME_CANCELLED)));
  EXPECT_EQ(end.change->state, JobState::kCancelled);
  EXPECT_EQ(Text("SELECT outcome FROM attempts"), "cancelled");
  EXPECT_THAT(Do<Cancelled>(CancelSweep{second, 4000}).jobs, testing::SizeIs(2));
  EXPECT_FALSE(Do<Cancelled>(CancelSweep{99, 4000}).found);
}

TEST_P(SweepsTest, AWaitingJobDemandsWhatTheOldestLiveSweepThatClaimsItDoes) {
  const std::int64_t greedy = SubmitWithMemory("a", "k0", 900);
  const std::int64_t modest = SubmitWithMemory("b", "k0", 8);
  EXPECT_EQ(Memory(), "900");
  const auto cancelled = Do<Cancelled>(CancelSweep{greedy, 4000});
  EXPECT_EQ(Memory(), "8");
  ASSERT_THAT(cancelled.ready, testing::SizeIs(1));
  EXPECT_EQ(cancelled.ready.front().requirement.memory_bytes, 8u);
  EXPECT_EQ(cancelled.ready.front().sweep_id, modest);
  EXPECT_THAT(cancelled.ready.front().others, IsEmpty());
}

TEST_P(SweepsTest, AJobThatNobodyWaitsForDemandsWhatTheNextSweepDoes) {
  Do<Cancelled>(CancelSweep{SubmitWithMemory("a", "k0", 900), 4000});
  SubmitWithMemory("b", "k0", 8);
  ASSERT_THAT(slice_.ready, testing::SizeIs(1));
  EXPECT_EQ(slice_.ready.front().requirement.memory_bytes, 8u);
  // It fails for want of memory. The sweep with more of it is submitted, then the job is retried.
  Attempt failed = Assign(1);
  Event(failed.Next(FailedEvent(state::ErrorKind::kBadSpec, "bad")));
  SubmitWithMemory("c", "k0", 40);
  EXPECT_EQ(Memory(), "40");
  // An imported sweep may have anything there.
  for (const char* other :
       {"", "[1]", R"({"device":"any","memory_bytes":"much"})",
        R"({"device":"any","memory_bytes":1.5})", R"({"device":"any","memory_bytes":-1})",
        R"({"device":"any","memory_bytes":99999999999999999999})",
        R"({"device":"moon","memory_bytes":1})"}) {
    resources_json_ = other;
    Submit(absl::StrCat("d", other), {Cell(0, "k0")});
    EXPECT_EQ(Memory(), "40") << other;
  }
}

TEST_P(SweepsTest, AJobThatIsWantedAgainSupersedesItsCancelledAttempt) {
  const std::int64_t first = Submit("a", {Cell(0, "k0")});
  Attempt stopping = Assign(1);
  Do<Cancelled>(CancelSweep{first, 4000});
  Submit("b", {Cell(0, "k0")});
  EXPECT_THAT(slice_.superseded, ElementsAre(stopping.id));
  EXPECT_EQ(JobState(1), "queued");
  EXPECT_EQ(Event(stopping.Next(StartedEvent(0, 3))).status, EventStored::kSuperseded);
  Assign(1, 9);
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE number = 1"), "superseded");
}

TEST_P(SweepsTest, CancellingAJobFinishesTheSweepsThatWaitForIt) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")});
  const auto cancelled = Do<Cancelled>(CancelJob{1, 4000});
  EXPECT_EQ(cancelled.claims_withdrawn, 1);
  EXPECT_THAT(cancelled.jobs, ElementsAre(1));
  EXPECT_EQ(SweepState(sweep), "finished");
  const auto gone = Do<AttemptCreated>(CreateAttempt{.job_id = 1, .worker_id = "w"});
  EXPECT_FALSE(gone.assignment);
}

TEST_P(SweepsTest, ASliceIsAppliedOnceAndNotToACancelledSweep) {
  const auto stored = Do<SweepStored>(SubmitSweep{.name = "s", .client_token = "a", .cells = 4});
  EXPECT_TRUE(Do<SweepStored>(SubmitSweep{.name = "s", .client_token = "a"}).repeated_token);
  ExpandSlice slice{
      .sweep_id = stored.sweep_id, .from = 0, .next = 2, .cells = {Cell(0, "k0"), Cell(1, "k1")}};
  EXPECT_TRUE(Do<SliceStored>(slice).applied);
  EXPECT_FALSE(Do<SliceStored>(slice).applied);
  EXPECT_EQ(SweepState(stored.sweep_id), "expanding");
  Do<Cancelled>(CancelSweep{stored.sweep_id, 1});
  EXPECT_EQ(JobState(1), "cancelled");
  slice.from = 2;
  slice.next = 4;
  EXPECT_FALSE(Do<SliceStored>(slice).applied);
}

TEST_P(SweepsTest, ASweepWithNothingToDoIsFinishedAtOnce) {
  EXPECT_EQ(SweepState(Submit("a", {})), "finished");
  EXPECT_THAT(ended_sweeps_, ElementsAre(1));
}

TEST_P(SweepsTest, EachEndOfASweepIsToldOnce) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1")}, false, 0, "[]");
  Submit("b", {Cell(0, "k1")}, false, 0, "[]");
  Attempt first = Assign(1);
  Train(first, 0, 3);
  Event(first.Next(SucceededEvent()));
  EXPECT_THAT(ended_sweeps_, IsEmpty());
  Attempt shared = Assign(2);
  Event(shared.Next(FailedEvent(state::ErrorKind::kBadSpec, "bad")));
  EXPECT_THAT(ended_sweeps_, ElementsAre(1, 2)) << "both end with their last job";
  Do<Retried>(RetrySlice{.sweep_id = 1, .now = 6000});
  Do<Cancelled>(CancelSweep{1, 7000});
  Do<Cancelled>(CancelSweep{1, 8000});
  EXPECT_THAT(ended_sweeps_, ElementsAre(1, 2, 1)) << "it was live again, and ends again";
}

}  // namespace
}  // namespace pelab::store
