// Tells the scheduler, with each queued job, which jobs one trainer may take together.
#include <map>

#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

class ReadyJobsTest : public StoreTest {
 protected:
  // Two configurations with two seeds each.
  static std::vector<NewCell> Cells() {
    std::vector<NewCell> cells;
    for (std::uint64_t i = 0; i < 4; ++i) {
      cells.push_back(Cell(i, absl::StrCat("k", i)));
      cells.back().seed = static_cast<std::int64_t>(i % 2);
      cells.back().spec_json = absl::StrCat("{\"cell\":", i / 2, ",\"seed\":", i % 2, "}");
    }
    return cells;
  }
  std::map<std::int64_t, ReadyJob> Recovered() {
    std::map<std::int64_t, ReadyJob> ready;
    EXPECT_TRUE(store_
                    ->Recover([](const auto&) {},
                              [&](const ReadyJob& job) { ready[job.job_id] = job; },
                              [](const auto&) {}, [](const auto&) {})
                    .ok());
    return ready;
  }
  std::int64_t Configuration(std::int64_t job_id) {
    return store_->database()
        .connection()
        .execAndGet(absl::StrCat("SELECT configuration_id FROM jobs WHERE job_id = ", job_id))
        .getInt64();
  }
  // Starts an attempt with this execution, then loses it.
  ReadyJob Lose(std::int64_t job_id, std::optional<Execution> execution) {
    Attempt attempt = Assign(job_id, ++token_);
    Event(attempt.Next(StartedEvent(0, 3, "{}", execution)));
    const auto lost =
        Do<EventStored>(EndAttempt{attempt.id, state::Event::kLose, "its worker is gone", 3000});
    EXPECT_TRUE(lost.change && lost.change->ready.has_value());
    return *lost.change->ready;
  }
  std::uint64_t token_ = 100;
};
INSTANTIATE_TEST_SUITE_P(Backends, ReadyJobsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(ReadyJobsTest, NewOnesAndRecoveredOnesHaveTheirConfiguration) {
  Submit("a", Cells());
  ASSERT_EQ(slice_.ready.size(), 4u);
  for (const ReadyJob& job : slice_.ready) {
    EXPECT_NE(job.configuration_id, 0);
    EXPECT_EQ(job.configuration_id, Configuration(job.job_id));
    EXPECT_EQ(job.execution, "");
  }
  EXPECT_EQ(slice_.ready[0].configuration_id, slice_.ready[1].configuration_id);
  EXPECT_EQ(slice_.ready[2].configuration_id, slice_.ready[3].configuration_id);
  EXPECT_NE(slice_.ready[0].configuration_id, slice_.ready[2].configuration_id);
  const auto recovered = Recovered();
  ASSERT_EQ(recovered.size(), 4u);
  for (const auto& [id, job] : recovered) EXPECT_EQ(job.configuration_id, Configuration(id));
  // The same holds for jobs that another sweep claims.
  Submit("b", {Cells()[1]});
  ASSERT_EQ(slice_.ready.size(), 1u);
  EXPECT_EQ(slice_.ready[0].configuration_id, Configuration(2));
}

TEST_P(ReadyJobsTest, WhatBeganAsABatchMayGoOnWithItsLike) {
  Submit("a", Cells());
  const Execution batch{.threads = 1, .micro_batch = 0, .packing = 4};
  const ReadyJob again = Lose(1, batch);
  EXPECT_EQ(again.configuration_id, Configuration(1));
  EXPECT_EQ(again.execution, R"({"threads":1,"micro_batch":0,"packing":4})");
  EXPECT_EQ(Recovered().at(1).execution, again.execution);
  EXPECT_EQ(Recovered().at(1).configuration_id, Configuration(1));
  // A job with other execution settings does not match.
  EXPECT_NE(Lose(2, Execution{.threads = 1, .micro_batch = 8, .packing = 4}).execution,
            again.execution);
}

TEST_P(ReadyJobsTest, WhatGainsNothingFromOthersGoesByItself) {
  Submit("a", Cells());
  EXPECT_EQ(Lose(1, Execution{.threads = 1, .micro_batch = 0, .packing = 1}).configuration_id, 0);
  EXPECT_EQ(Recovered().at(1).configuration_id, 0);
  // The job is trained; only an analysis is missing.
  TrainWhole(3);
  const auto asked = Do<Analyzed>(
      Analyze{.jobs = {3}, .analyses = {{"layer_ablation", 1, R"({"method":"zero"})"}}, .now = 1});
  ASSERT_EQ(asked.jobs.ready.size(), 1u);
  EXPECT_EQ(asked.jobs.ready[0].configuration_id, 0);
}

TEST_P(ReadyJobsTest, WhatMayHaveEndedItsTrainerGoesByItself) {
  Submit("a", Cells());
  Attempt attempt = Assign(1, ++token_);
  const auto failed =
      Event(attempt.Next(FailedEvent(state::ErrorKind::kTrainerDied, "ended by signal 11")));
  ASSERT_TRUE(failed.change->ready.has_value());
  EXPECT_EQ(failed.change->ready->configuration_id, 0);
  for (int losses = 1; losses <= 2; ++losses) {
    EXPECT_EQ(Lose(2, std::nullopt).configuration_id, Configuration(2)) << losses;
  }
  EXPECT_EQ(Lose(2, std::nullopt).configuration_id, 0);
  // A retry, with fresh budgets, matches the others again.
  Do<Cancelled>(CancelJob{2, 1});
  const auto retried = Do<Retried>(RetryJob{.job_id = 2, .now = 1});
  ASSERT_EQ(retried.jobs.ready.size(), 1u);
  EXPECT_EQ(retried.jobs.ready[0].configuration_id, Configuration(2));
}

}  // namespace
}  // namespace pelab::store
