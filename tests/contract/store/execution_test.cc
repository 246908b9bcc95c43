// Later attempts of a job: they keep the settings of the first attempt; and the budgets for lost
// attempts.
#include <limits>

#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using state::Outcome;
using testing::HasSubstr;

class ExecutionTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Backends, ExecutionTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(ExecutionTest, LaterAttemptsComputeAsTheFirst) {
  Submit("a", {Cell(0, "k0")});
  const Execution first{.threads = 2, .micro_batch = 64, .packing = 1};
  Attempt attempt = Assign(1, 1);
  EXPECT_FALSE(assignment_.execution.has_value());
  Event(attempt.Next(StartedEvent(0, 3, "{}", first)));
  Event(attempt.Next(MakeEpoch(0)));
  Do<EventStored>(EndAttempt{attempt.id, state::Event::kLose, "", 3000});
  Attempt wrong = Assign(1, 2);
  EXPECT_EQ(assignment_.execution, first);
  const EventStored refused = Event(wrong.Next(StartedEvent(1, 3, "{}", Execution{4, 64, 1})));
  EXPECT_EQ(refused.status, EventStored::kSuperseded);
  EXPECT_THAT(Text("SELECT error FROM attempts WHERE number = 2"),
              HasSubstr("with 4 threads, micro-batches of 64 and packing 1; the job began with 2"));
  Attempt right = Assign(1, 3);
  EXPECT_EQ(Event(right.Next(StartedEvent(1, 3, "{}", first))).status, EventStored::kStored);
  EXPECT_EQ(Text("SELECT execution_json FROM jobs"),
            R"({"threads":2,"micro_batch":64,"packing":1})");
}

// The settings of the first hello are those of all later attempts.
TEST_P(ExecutionTest, SettingsThatCannotBeAreNotTheJobs) {
  constexpr int kHuge = std::numeric_limits<int>::max();
  std::int64_t job_id = 0;
  for (const Execution& bad : {Execution{-4, -1, -7}, Execution{kHuge, kHuge, kHuge},
                               Execution{2, -1, 1}, Execution{2, 64, 65}}) {
    Submit(absl::StrCat("a", ++job_id), {Cell(job_id, absl::StrCat("k", job_id))});
    Attempt attempt = Assign(job_id, 100 + job_id);
    EXPECT_EQ(Event(attempt.Next(StartedEvent(0, 3, "{}", bad))).status, EventStored::kSuperseded);
    EXPECT_EQ(Text(absl::StrCat("SELECT execution_json IS NULL FROM jobs WHERE job_id = ", job_id)),
              "1");
    EXPECT_THAT(Text(absl::StrCat("SELECT error FROM attempts WHERE job_id = ", job_id)),
                HasSubstr("allowed: an integer from"));
  }
}

// SQLite refuses a whole query for one unreadable text: without this no job would be assigned.
TEST_P(ExecutionTest, SettingsThatCannotBeReadAreNoSettings) {
  const std::string nested = std::string(3000, '[') + std::string(3000, ']');
  std::int64_t job_id = 0;
  for (const std::string& bad :
       {std::string("{"), std::string("[1]"), std::string(R"({"threads":"many"})"),
        std::string(R"({"threads":-4,"micro_batch":0,"packing":1})"),
        std::string(R"({"threads":10000000000,"micro_batch":0,"packing":1})"), nested}) {
    Submit(absl::StrCat("a", ++job_id), {Cell(job_id, absl::StrCat("k", job_id))});
    Text(absl::StrCat("UPDATE jobs SET execution_json = '", bad, "' WHERE job_id = ", job_id));
    Attempt attempt = Assign(job_id, 100 + job_id);
    EXPECT_FALSE(assignment_.execution.has_value());
    EXPECT_EQ(Event(attempt.Next(StartedEvent(0, 3))).status, EventStored::kStored);
    EXPECT_EQ(Event(attempt.Next(MakeEpoch(0))).status, EventStored::kStored);
  }
}

TEST_P(ExecutionTest, PreemptionAfterProgressSpendsNoBudget) {
  Submit("a", {Cell(0, "k0", /*epochs=*/20)});
  for (int i = 0; i < 8; ++i) {
    Attempt attempt = Assign(1, 100 + i);
    Event(attempt.Next(StartedEvent(i, 20)));
    Event(attempt.Next(MakeEpoch(i)));
    Event(attempt.Next(EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED)));
  }
  EXPECT_EQ(Text("SELECT state, lost_attempts FROM jobs"), "queued 0");
  for (int i = 0; i < 5; ++i) {
    Attempt attempt = Assign(1, 200 + i);
    Event(attempt.Next(StartedEvent(8, 20)));
    Event(attempt.Next(EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED)));
  }
  EXPECT_EQ(Text("SELECT state, lost_attempts FROM jobs"), "failed 5");
}

// On hosts that come and go: each attempt gets further than all before it.
TEST_P(ExecutionTest, ALossAfterProgressGivesAFreshBudget) {
  Submit("a", {Cell(0, "k0", /*epochs=*/20)});
  const auto lose = [&](int from, int to, std::uint64_t token) {
    Attempt attempt = Assign(1, token);
    Event(attempt.Next(StartedEvent(from, 20)));
    for (int epoch = from; epoch < to; ++epoch) Event(attempt.Next(MakeEpoch(epoch)));
    Do<EventStored>(EndAttempt{attempt.id, state::Event::kLose, "", 3000});
  };
  for (int i = 0; i < 8; ++i) lose(i, i + 1, 100 + i);
  EXPECT_EQ(Text("SELECT state, lost_attempts FROM jobs"), "queued 1");
  // Repeating the same epochs is no progress.
  for (int i = 0; i < 4; ++i) lose(6, 8, 200 + i);
  EXPECT_EQ(Text("SELECT state, lost_attempts FROM jobs"), "failed 5");
}

TEST_P(ExecutionTest, ATrainerThatStopsByItselfFailsUnlessItGotFurther) {
  Submit("a", {Cell(0, "k0", /*epochs=*/20)});
  const auto stop = [&](int from, int to, std::uint64_t token) {
    Attempt attempt = Assign(1, token);
    Event(attempt.Next(StartedEvent(from, 20)));
    for (int epoch = from; epoch < to; ++epoch) Event(attempt.Next(MakeEpoch(epoch)));
    Event(attempt.Next(EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED, state::ErrorKind::kTrainerDied,
                                "SIGTERM from elsewhere")));
  };
  for (int i = 0; i < 8; ++i) stop(i, i + 1, 100 + i);
  EXPECT_EQ(Text("SELECT state, lost_attempts, failed_attempts FROM jobs"), "queued 1 0");
  EXPECT_EQ(Text("SELECT not_before FROM jobs"), "0") << "at once";
  stop(0, 1, 200);
  EXPECT_EQ(Text("SELECT state, lost_attempts, failed_attempts FROM jobs"), "queued 1 1");
  EXPECT_NE(Text("SELECT not_before FROM jobs"), "0") << "after a pause";
  stop(0, 1, 201);
  stop(0, 1, 202);
  EXPECT_EQ(Text("SELECT state, failed_attempts FROM jobs"), "failed 3");
  EXPECT_EQ(Text("SELECT outcome, error FROM attempts ORDER BY number DESC LIMIT 1"),
            "failed SIGTERM from elsewhere; it had stored no new epoch");
}

// A trainer that trains its jobs one after another is preempted again and again.
TEST_P(ExecutionTest, WaitingForItsTurnSpendsNoBudget) {
  Submit("a", {Cell(0, "k0", 20), Cell(1, "k1", 20), Cell(2, "k2", 20)});
  AddWorker();
  std::uint64_t token = 0;
  const auto assign = [&](std::int64_t job_id, int slot, std::int64_t now) {
    const auto created = Do<AttemptCreated>(CreateAttempt{.job_id = job_id,
                                                          .worker_id = "w",
                                                          .slot = slot,
                                                          .device = "cpu",
                                                          .token = ++token,
                                                          .now = now});
    return Attempt{created.assignment->attempt_id, token};
  };
  const auto preempt = [&](Attempt& attempt) {
    Event(attempt.Next(EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED)));
  };
  for (int i = 0; i < 8; ++i) {
    Attempt first = assign(1, 0, 2000 + i);
    Attempt second = assign(2, 0, 2000 + i);
    Event(first.Next(StartedEvent(i, 20)));
    Event(first.Next(MakeEpoch(i)));
    preempt(i % 2 == 0 ? first : second);
    preempt(i % 2 == 0 ? second : first);
  }
  EXPECT_EQ(Text("SELECT state, lost_attempts FROM jobs WHERE job_id < 3"), "queued 0 queued 0");
  // A job alone has its turn. The same holds if the other jobs came at another time, are on another
  // slot, or have not begun either.
  Attempt alone = assign(3, 0, 3000);
  preempt(alone);
  EXPECT_EQ(Text("SELECT lost_attempts FROM jobs WHERE job_id = 3"), "1");
  Attempt begun = assign(1, 0, 4000);
  Event(begun.Next(StartedEvent(8, 20)));
  Attempt elsewhere = assign(2, 1, 4000);
  Attempt later = assign(3, 0, 4001);
  preempt(elsewhere);
  preempt(later);
  EXPECT_EQ(Text("SELECT lost_attempts FROM jobs WHERE job_id > 1"), "1 2");
  Attempt silent = assign(2, 0, 5000);
  Attempt too = assign(3, 0, 5000);
  preempt(silent);
  preempt(too);
  EXPECT_EQ(Text("SELECT lost_attempts FROM jobs WHERE job_id > 1"), "2 3");
}

TEST_P(ExecutionTest, AHelloOfTheSameBatchOfWritesCounts) {
  Submit("a", {Cell(0, "k0", 20), Cell(1, "k1", 20)});
  Attempt first = Assign(1, 100);
  Attempt second = Assign(2, 200);
  const std::vector<Write> writes = {first.Next(StartedEvent(0, 20)),
                                     second.Next(EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED))};
  ASSERT_TRUE(store_->Apply(writes).ok());
  EXPECT_EQ(Text("SELECT lost_attempts FROM jobs WHERE job_id = 2"), "0");
}

}  // namespace
}  // namespace pelab::store
