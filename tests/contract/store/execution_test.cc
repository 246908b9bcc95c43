// What later attempts owe to earlier ones: the first one's settings, and budgets.
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
  Event(attempt.Next(Started{0, 3, "{}", first}));
  Event(attempt.Next(MakeEpoch(0)));
  Do<EventStored>(EndAttempt{attempt.id, state::Event::kLose, "", 3000});
  Attempt wrong = Assign(1, 2);
  EXPECT_EQ(assignment_.execution, first);
  const EventStored refused = Event(wrong.Next(Started{1, 3, "{}", Execution{4, 64, 1}}));
  EXPECT_EQ(refused.status, EventStored::kSuperseded);
  EXPECT_THAT(Text("SELECT error FROM attempts WHERE number = 2"),
              HasSubstr("with 4 threads, micro-batches of 64 and packing 1; the job began with 2"));
  Attempt right = Assign(1, 3);
  EXPECT_EQ(Event(right.Next(Started{1, 3, "{}", first})).status, EventStored::kStored);
  EXPECT_EQ(Text("SELECT execution_json FROM jobs"),
            R"({"threads":2,"micro_batch":64,"packing":1})");
}

TEST_P(ExecutionTest, PreemptionAfterProgressSpendsNoBudget) {
  Submit("a", {Cell(0, "k0", /*epochs=*/20)});
  for (int i = 0; i < 8; ++i) {
    Attempt attempt = Assign(1, 100 + i);
    Event(attempt.Next(Started{i, 20, "{}"}));
    Event(attempt.Next(MakeEpoch(i)));
    Event(attempt.Next(Finished{Outcome::kPreempted}));
  }
  EXPECT_EQ(Text("SELECT state, lost_attempts FROM jobs"), "queued 0");
  for (int i = 0; i < 5; ++i) {
    Attempt attempt = Assign(1, 200 + i);
    Event(attempt.Next(Started{8, 20, "{}"}));
    Event(attempt.Next(Finished{Outcome::kPreempted}));
  }
  EXPECT_EQ(Text("SELECT state, lost_attempts FROM jobs"), "failed 5");
}

}  // namespace
}  // namespace pelab::store
