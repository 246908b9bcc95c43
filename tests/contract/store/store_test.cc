// The store's contract, the same on a file and in memory.
#include "server/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/views/schema.h"
#include "server/store/database.h"

namespace pelab::store {
namespace {

using state::JobState;
using state::Outcome;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kAnalyses[] =
    R"([{"name":"head_ablation","version":1,"parameters_json":"{\"data\":\"test\",\"hygiene\":\"raw\",\"method\":\"zero\"}"}])";
constexpr char kParameters[] = R"({"data":"test","hygiene":"raw","method":"zero"})";

NewCell Cell(std::uint64_t ordinal, const std::string& key, int epochs = 3) {
  return {
      .ordinal = ordinal,
      .key = key,
      .pe_label = "rope",
      .protocol_label = "clean",
      .seed = static_cast<std::int64_t>(ordinal),
      .spec_json = R"({"pe":{"name":"rope","version":2},"task":{"name":"distance","version":3}})",
      .requirement = {.pe = "rope", .task = "distance", .device_kind = "any"},
      .epochs = epochs};
}

Epoch MakeEpoch(int epoch, int correct = 40) {
  return {.epoch = epoch,
          .train_loss = 1.0 / (3 + epoch),
          .train_correct = correct,
          .train_total = 99,
          .test_loss = 1.0 / (7 + epoch),
          .test_correct = correct + epoch,
          .test_total = 97,
          .learning_rate = 0.001,
          .seconds = 2.0};
}

HeadAblation Matrix() {
  return {.version = 1,
          .parameters_json = kParameters,
          .layers = 2,
          .heads = 2,
          .total = 97,
          .intact_correct = 42,
          .correct = {10, 20, 30, 42},
          .seconds = 0.5};
}

// Numbers the events of one attempt.
struct Attempt {
  std::int64_t id = 0;
  std::uint64_t token = 0;
  std::uint64_t sequence = 0;
  AttemptEvent Next(decltype(AttemptEvent::body) body) {
    return {.attempt_id = id,
            .token = token,
            .sequence = ++sequence,
            .body = std::move(body),
            .now = 5000,
            .jitter = 0.5};
  }
};

class StoreTest : public testing::TestWithParam<bool> {
 protected:
  StoreTest() {
    std::string pattern = testing::TempDir() + "storeXXXXXX";
    directory_ = mkdtemp(pattern.data());
    path_ = GetParam() ? directory_ + "/pelab.db" : ":memory:";
    Open();
  }
  ~StoreTest() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  void Open(const StoreOptions& options = {}) {
    store_.reset();
    auto store = Store::Open(path_, options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  template <typename Result>
  Result Do(Write write) {
    const std::vector<Write> writes = {std::move(write)};
    auto results = store_->Apply(writes);
    EXPECT_TRUE(results.ok()) << results.status();
    EXPECT_TRUE(results->front().ok()) << results->front().status();
    return std::get<Result>(*results->front());
  }
  EventStored Event(const AttemptEvent& event) { return Do<EventStored>(event); }

  std::int64_t Submit(const std::string& token, const std::vector<NewCell>& cells,
                      bool fresh = false, int priority = 0,
                      const std::string& analyses = kAnalyses) {
    const auto stored = Do<SweepStored>(SubmitSweep{.name = "sweep-" + token,
                                                    .protocol = "clean",
                                                    .document = "doc",
                                                    .file_name = "f.yaml",
                                                    .overrides_json = "[]",
                                                    .client_token = token,
                                                    .analyses_json = analyses,
                                                    .resources_json = "{}",
                                                    .priority = priority,
                                                    .fresh = fresh,
                                                    .cells = cells.size(),
                                                    .now = 1000});
    slice_ = Do<SliceStored>(ExpandSlice{.sweep_id = stored.sweep_id,
                                         .from = 0,
                                         .next = cells.size(),
                                         .last = true,
                                         .cells = cells,
                                         .now = 1000});
    return stored.sweep_id;
  }
  void AddWorker(const std::string& id = "w") {
    Do<WorkerStored>(WorkerHello{.worker_id = id,
                                 .host = "h",
                                 .version = "1",
                                 .slots_json = "[]",
                                 .slots = 1,
                                 .capabilities_json = "{}",
                                 .now = 1000});
  }
  Attempt Assign(std::int64_t job_id, std::uint64_t token = 77) {
    AddWorker();
    const auto created = Do<AttemptCreated>(CreateAttempt{.job_id = job_id,
                                                          .worker_id = "w",
                                                          .slot = 0,
                                                          .device = "cpu",
                                                          .token = token,
                                                          .now = 2000});
    EXPECT_TRUE(created.assignment.has_value());
    if (!created.assignment) return {};
    assignment_ = *created.assignment;
    return {assignment_.attempt_id, token};
  }
  // Starts at `from` and stores the epochs up to `to`.
  void Train(Attempt& attempt, int from, int to, int correct = 40) {
    ASSERT_EQ(Event(attempt.Next(Started{from, 3, "{}"})).status, EventStored::kStored);
    for (int i = from; i < to; ++i) {
      ASSERT_EQ(Event(attempt.Next(MakeEpoch(i, correct))).status, EventStored::kStored);
    }
  }
  std::string Text(const std::string& sql) {
    SQLite::Statement statement(store_->database().connection(), sql);
    std::string all;
    while (statement.executeStep()) {
      for (int i = 0; i < statement.getColumnCount(); ++i) {
        absl::StrAppend(&all, all.empty() ? "" : " ", statement.getColumn(i).getString());
      }
    }
    return all;
  }
  std::string JobState(std::int64_t id) {
    return Text(absl::StrCat("SELECT state FROM jobs WHERE job_id = ", id));
  }
  std::string SweepState(std::int64_t id) {
    return Text(absl::StrCat("SELECT state FROM sweeps WHERE sweep_id = ", id));
  }

  std::string directory_;
  std::string path_;
  std::unique_ptr<Store> store_;
  SliceStored slice_;
  Assignment assignment_;
};

INSTANTIATE_TEST_SUITE_P(Backends, StoreTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(StoreTest, AWholeAttemptSucceeds) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")});
  ASSERT_EQ(slice_.ready.size(), 1u);
  EXPECT_EQ(SweepState(sweep), "active");
  Attempt attempt = Assign(1);
  EXPECT_EQ(JobState(1), "assigned");
  EXPECT_THAT(assignment_.analyses, ElementsAre(Analysis{"head_ablation", 1, kParameters}));
  Train(attempt, 0, 3);
  EXPECT_EQ(JobState(1), "running");
  Event(attempt.Next(Matrix()));
  Event(attempt.Next(Artifact{"weights.safetensors", std::string(64, 'a'), 12}));
  const EventStored end = Event(attempt.Next(Finished{.wall_seconds = 9.5}));
  ASSERT_TRUE(end.change.has_value());
  EXPECT_EQ(end.change->state, JobState::kSucceeded);
  EXPECT_EQ(JobState(1), "succeeded");
  EXPECT_EQ(SweepState(sweep), "finished");
  EXPECT_EQ(Text("SELECT train_correct, train_total, test_correct, test_total, best_test_accuracy "
                 "= 42.0/97, wall_seconds, epochs_done, device FROM v_jobs"),
            "40 99 42 97 1 9.5 3 cpu");
  EXPECT_EQ(Text("SELECT train_loss = 1.0/3 FROM v_curves WHERE epoch = 0"), "1");
  EXPECT_EQ(Text("SELECT method, hygiene, split, layer, head, correct, total FROM v_head_ablation "
                 "WHERE layer = 1 AND head = 0"),
            "zero raw test 1 0 30 97");
  EXPECT_EQ(Text("SELECT outcome, start_epoch FROM v_attempts"), "succeeded 0");
  EXPECT_EQ(Text("SELECT name, bytes FROM artifacts"), "weights.safetensors 12");
}

TEST_P(StoreTest, RepeatedEventsAreAcknowledgedAndChangeNothing) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 1);
  const std::string before = Text("SELECT * FROM curves") + Text("SELECT * FROM jobs");
  attempt.sequence = 1;
  const EventStored again = Event(attempt.Next(MakeEpoch(0, 13)));
  EXPECT_EQ(again.status, EventStored::kDuplicate);
  EXPECT_EQ(again.acknowledged, 2u);
  EXPECT_EQ(Text("SELECT * FROM curves") + Text("SELECT * FROM jobs"), before);
}

TEST_P(StoreTest, AGapIsRefusedAndSaysWhereToResendFrom) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 1);
  attempt.sequence += 1;
  const EventStored gap = Event(attempt.Next(MakeEpoch(2)));
  EXPECT_EQ(gap.status, EventStored::kGap);
  EXPECT_EQ(gap.acknowledged, 2u);
  EXPECT_EQ(Text("SELECT count(*) FROM curves"), "1");
  EXPECT_EQ(JobState(1), "running");
}

TEST_P(StoreTest, LateAndForeignTokensAreSuperseded) {
  Submit("a", {Cell(0, "k0")});
  Attempt first = Assign(1, 77);
  Train(first, 0, 2);
  EXPECT_TRUE(Do<EventStored>(EndAttempt{first.id, state::Event::kLose, "gone", 3000}).change);
  Attempt second = Assign(1, 88);
  EXPECT_EQ(assignment_.max_start_epoch, 2);
  EXPECT_EQ(Event(first.Next(MakeEpoch(2))).status, EventStored::kSuperseded);
  Attempt forged{second.id, 77};
  EXPECT_EQ(Event(forged.Next(Started{0, 3, "{}"})).status, EventStored::kSuperseded);
  Attempt unknown{4711, 77};
  EXPECT_EQ(Event(unknown.Next(Started{0, 3, "{}"})).status, EventStored::kSuperseded);
  EXPECT_EQ(Text("SELECT count(*) FROM curves"), "2");
  EXPECT_EQ(JobState(1), "assigned");
  EXPECT_EQ(Text("SELECT outcome, error FROM attempts WHERE number = 1"), "lost gone");
}

TEST_P(StoreTest, TheAcceptedLineHasEveryEpochOnceOverRestartedAttempts) {
  Submit("a", {Cell(0, "k0")});
  Attempt first = Assign(1, 1);
  Train(first, 0, 2, /*correct=*/10);
  Do<EventStored>(EndAttempt{first.id, state::Event::kLose, "", 3000});
  Attempt second = Assign(1, 2);
  Train(second, 1, 2, /*correct=*/20);  // from its checkpoint of epoch 1
  EXPECT_EQ(Text("SELECT epochs_done, test_correct, best_test_correct FROM jobs"), "2 21 21");
  Do<EventStored>(EndAttempt{second.id, state::Event::kLose, "", 3000});
  Attempt third = Assign(1, 3);
  Event(third.Next(Started{2, 3, "{}"}));
  EXPECT_EQ(Text("SELECT epochs_done, test_correct, best_test_correct FROM jobs"), "2 21 21");
  Event(third.Next(MakeEpoch(2, 30)));
  Event(third.Next(Matrix()));
  const EventStored end = Event(third.Next(Finished{.wall_seconds = 1.0}));
  EXPECT_EQ(end.change->state, JobState::kSucceeded);
  EXPECT_EQ(Text("SELECT epoch, test_correct FROM v_curves ORDER BY epoch"), "0 10 1 21 2 32");
  EXPECT_EQ(Text("SELECT wall_seconds FROM jobs"), "5.0");  // two epochs of 2 s before it
  EXPECT_EQ(Text("SELECT count(*) FROM curves"), "4");      // nothing was deleted
}

TEST_P(StoreTest, AStartFromScratchHidesWhatWasThere) {
  Submit("a", {Cell(0, "k0")});
  Attempt first = Assign(1, 1);
  Train(first, 0, 2, 30);
  Do<EventStored>(EndAttempt{first.id, state::Event::kLose, "", 3000});
  Attempt second = Assign(1, 2);
  EXPECT_EQ(Text("SELECT epochs_done FROM jobs"), "2");  // until the new line begins
  Event(second.Next(Started{0, 3, "{}"}));
  EXPECT_EQ(Text("SELECT epochs_done, test_correct IS NULL, best_test_correct IS NULL FROM jobs"),
            "0 1 1");
  EXPECT_EQ(Text("SELECT count(*) FROM v_curves"), "0");
}

TEST_P(StoreTest, AStartBeyondWhatIsStoredFailsTheAttempt) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  const EventStored refused = Event(attempt.Next(Started{1, 3, "{}"}));
  EXPECT_EQ(refused.status, EventStored::kSuperseded);
  ASSERT_TRUE(refused.change.has_value());
  EXPECT_EQ(refused.change->outcome, Outcome::kFailed);
  ASSERT_TRUE(refused.change->ready.has_value());
  EXPECT_EQ(refused.change->ready->not_before, 5500);  // 1 s times the jitter of 0.5
  EXPECT_EQ(JobState(1), "queued");
  EXPECT_THAT(Text("SELECT error FROM attempts"), HasSubstr("only 0 epochs"));
}

TEST_P(StoreTest, EventsThatCannotBeEndTheAttempt) {
  const std::vector<decltype(AttemptEvent::body)> bad = {
      MakeEpoch(2),         // 1 is due
      MakeEpoch(0),         // stored already
      Started{0, 3, "{}"},  // a second hello
      Epoch{.epoch = 1, .train_correct = 5, .train_total = 4, .test_correct = 1, .test_total = 4},
      HeadAblation{.version = 1,
                   .parameters_json = "{}",
                   .layers = 2,
                   .heads = 2,
                   .total = 9,
                   .intact_correct = 1,
                   .correct = {1, 2, 3}},
      HeadAblation{.version = 1,
                   .parameters_json = "{}",
                   .layers = 1,
                   .heads = 1,
                   .total = 9,
                   .intact_correct = 1,
                   .correct = {10}},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(i);
    Submit(absl::StrCat("t", i), {Cell(0, absl::StrCat("k", i))});
    Attempt attempt = Assign(slice_.ready.front().job_id);
    Train(attempt, 0, 1);
    const EventStored refused = Event(attempt.Next(bad[i]));
    EXPECT_EQ(refused.status, EventStored::kSuperseded);
    ASSERT_TRUE(refused.change.has_value());
    EXPECT_EQ(refused.change->outcome, Outcome::kFailed);
    EXPECT_EQ(Event(attempt.Next(MakeEpoch(1))).status, EventStored::kSuperseded);
  }
  EXPECT_EQ(Text("SELECT count(*) FROM curves"), absl::StrCat(bad.size()));
}

TEST_P(StoreTest, ALossThatIsNotFiniteFailsTheJobForGood) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Event(attempt.Next(Started{0, 3, "{}"}));
  Epoch epoch = MakeEpoch(0);
  epoch.train_loss = std::numeric_limits<double>::quiet_NaN();
  const EventStored refused = Event(attempt.Next(epoch));
  EXPECT_EQ(refused.change->state, JobState::kFailed);
  EXPECT_EQ(refused.change->error, state::ErrorKind::kNonFiniteLoss);
}

TEST_P(StoreTest, SuccessNeedsEveryEpochAndEveryAnalysis) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 2);
  const EventStored end = Event(attempt.Next(Finished{}));
  EXPECT_EQ(end.status, EventStored::kStored);  // the worker is done with it
  EXPECT_EQ(end.change->outcome, Outcome::kFailed);
  EXPECT_EQ(JobState(1), "queued");
  const std::string error = Text("SELECT error FROM jobs");
  EXPECT_THAT(error, HasSubstr("epochs 2 to 2"));
  EXPECT_THAT(error, HasSubstr("head_ablation"));
}

TEST_P(StoreTest, FailuresAndLossesHaveTheirBudgets) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2")});
  for (int i = 1; i <= 5; ++i) {
    Attempt attempt = Assign(1, i);
    const auto end = Do<EventStored>(EndAttempt{attempt.id, state::Event::kLose, "lost it", 3000});
    EXPECT_EQ(end.change->ready.has_value(), i < 5);
    if (i < 5) {
      EXPECT_EQ(end.change->ready->not_before, 0);
    }
  }
  EXPECT_EQ(JobState(1), "failed");
  for (int i = 1; i <= 3; ++i) {
    Attempt attempt = Assign(2, i);
    Event(attempt.Next(Finished{Outcome::kFailed, state::ErrorKind::kTrainerDied, "died"}));
  }
  EXPECT_EQ(Text("SELECT state, failed_attempts, lost_attempts, error FROM jobs WHERE job_id = 2"),
            "failed 3 0 died");
  Attempt attempt = Assign(3);
  Event(attempt.Next(Finished{Outcome::kFailed, state::ErrorKind::kOutOfMemory, "too big"}));
  EXPECT_EQ(JobState(3), "failed");  // at once
  EXPECT_EQ(SweepState(1), "finished");
}

TEST_P(StoreTest, SubmittingCountsWhatIsThere) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2"), Cell(3, "k3")}, false, 0, "[]");
  Attempt done = Assign(1);
  Train(done, 0, 3);
  Event(done.Next(Finished{}));
  Attempt failed = Assign(2);
  Event(failed.Next(Finished{Outcome::kFailed, state::ErrorKind::kBadSpec, "bad"}));
  Do<Cancelled>(CancelJob{3, 4000});
  const std::int64_t second = Submit("b", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2"),
                                           Cell(3, "k3"), Cell(4, "k4"), Cell(5, "k4")});
  EXPECT_EQ(Text(absl::StrCat("SELECT new_jobs, stored_jobs, in_flight_jobs, failed_earlier_jobs "
                              "FROM sweeps WHERE sweep_id = ",
                              second)),
            "2 1 1 1");  // k2 was cancelled, k4 is new and only once
  std::vector<std::int64_t> ready;
  for (const ReadyJob& job : slice_.ready) ready.push_back(job.job_id);
  EXPECT_THAT(ready, ElementsAre(3, 5));
  EXPECT_EQ(JobState(3), "queued");
  EXPECT_EQ(JobState(2), "failed");
}

TEST_P(StoreTest, FreshMakesANewGenerationAndViewsShowTheLatestThatSucceeded) {
  Submit("a", {Cell(0, "k0")}, false, 0, "[]");
  Attempt done = Assign(1);
  Train(done, 0, 3);
  Event(done.Next(Finished{}));
  Submit("b", {Cell(0, "k0"), Cell(1, "k0")}, /*fresh=*/true, 0, "[]");
  EXPECT_EQ(Text("SELECT count(*), max(generation) FROM jobs"), "2 2");
  EXPECT_EQ(Text("SELECT job_id FROM v_jobs"), "1");
  Attempt again = Assign(2, 5);
  Train(again, 0, 3);
  Event(again.Next(Finished{}));
  EXPECT_EQ(Text("SELECT job_id, generation FROM v_jobs"), "2 2");
}

TEST_P(StoreTest, AJobStopsWhenNoLiveSweepClaimsIt) {
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
  // The worker confirms; what it stored meanwhile is kept.
  Event(running.Next(Started{0, 3, "{}"}));
  const EventStored end = Event(running.Next(Finished{Outcome::kCancelled}));
  EXPECT_EQ(end.change->state, JobState::kCancelled);
  EXPECT_EQ(Text("SELECT outcome FROM attempts"), "cancelled");
  EXPECT_THAT(Do<Cancelled>(CancelSweep{second, 4000}).jobs, testing::SizeIs(2));
  EXPECT_FALSE(Do<Cancelled>(CancelSweep{99, 4000}).found);
}

TEST_P(StoreTest, AJobThatIsWantedAgainSupersedesItsCancelledAttempt) {
  const std::int64_t first = Submit("a", {Cell(0, "k0")});
  Attempt stopping = Assign(1);
  Do<Cancelled>(CancelSweep{first, 4000});
  Submit("b", {Cell(0, "k0")});
  EXPECT_THAT(slice_.superseded, ElementsAre(stopping.id));
  EXPECT_EQ(JobState(1), "queued");
  EXPECT_EQ(Event(stopping.Next(Started{0, 3, "{}"})).status, EventStored::kSuperseded);
  Assign(1, 9);
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE number = 1"), "superseded");
}

TEST_P(StoreTest, CancellingAJobFinishesTheSweepsThatWaitForIt) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")});
  const auto cancelled = Do<Cancelled>(CancelJob{1, 4000});
  EXPECT_EQ(cancelled.claims_withdrawn, 1);
  EXPECT_THAT(cancelled.jobs, ElementsAre(1));
  EXPECT_EQ(SweepState(sweep), "finished");
  const auto gone = Do<AttemptCreated>(CreateAttempt{.job_id = 1, .worker_id = "w"});
  EXPECT_FALSE(gone.assignment.has_value());
}

TEST_P(StoreTest, ASliceIsAppliedOnceAndNotToACancelledSweep) {
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

TEST_P(StoreTest, ASweepWithNothingToDoIsFinishedAtOnce) {
  EXPECT_EQ(SweepState(Submit("a", {})), "finished");
}

TEST_P(StoreTest, LogsKeepTheirLast256KiB) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  const std::string chunk(64 * 1024, 'x');
  for (int i = 0; i < 8; ++i) {
    Do<Nothing>(AppendLog{attempt.id, attempt.token, i * chunk.size(), chunk});
  }
  Do<Nothing>(AppendLog{attempt.id, attempt.token + 1, 0, "forged"});
  EXPECT_EQ(Text("SELECT count(*), min(byte_offset), sum(length(data)) FROM logs"),
            "4 262144 262144");
}

TEST_P(StoreTest, AWriteThatTheSchemaRefusesSpoilsNoOther) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  const std::vector<Write> writes = {
      attempt.Next(Started{0, 3, "{}"}),
      WorkerSeen{"w", "no such state", 1},  // CHECK
      attempt.Next(MakeEpoch(0)),
  };
  const auto results = store_->Apply(writes);
  ASSERT_TRUE(results.ok());
  EXPECT_TRUE((*results)[0].ok());
  EXPECT_FALSE((*results)[1].ok());
  EXPECT_TRUE((*results)[2].ok());
  EXPECT_EQ(Text("SELECT count(*) FROM curves"), "1");
}

TEST_P(StoreTest, HelloAnswersWhatIsHeld) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  Attempt open = Assign(1, 5);
  Train(open, 0, 2);
  Attempt lost = Assign(2, 6);
  Do<EventStored>(EndAttempt{lost.id, state::Event::kLose, "", 3000});
  const auto stored = Do<WorkerStored>(
      WorkerHello{.worker_id = "w",
                  .slots_json = "[]",
                  .held = {{open.id, 5, 0}, {lost.id, 6, 1}, {open.id, 4, 0}, {99, 1, 0}}});
  ASSERT_EQ(stored.held.size(), 4u);
  EXPECT_TRUE(stored.held[0].accepted);
  EXPECT_EQ(stored.held[0].acknowledged, 3u);
  EXPECT_FALSE(stored.held[1].accepted);
  EXPECT_FALSE(stored.held[2].accepted);
  EXPECT_FALSE(stored.held[3].accepted);
}

// Files only -----------------------------------------------------------------------------------

class StoreFileTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(File, StoreFileTest, testing::Values(true));

TEST_P(StoreFileTest, WhatWasAppliedIsThereAfterAReopenAndRecovers) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0"), Cell(1, "k1")}, false, 7);
  const auto half = Do<SweepStored>(SubmitSweep{.name = "half",
                                                .document = "the document",
                                                .overrides_json = "[]",
                                                .client_token = "b",
                                                .cells = 10});
  Do<SliceStored>(
      ExpandSlice{.sweep_id = half.sweep_id, .from = 0, .next = 1, .cells = {Cell(0, "k9")}});
  Attempt attempt = Assign(1, 5);
  Train(attempt, 0, 2);
  Open();
  std::vector<ReadyJob> ready;
  std::vector<OpenAttempt> open;
  std::vector<ExpandingSweep> expanding;
  ASSERT_TRUE(store_
                  ->Recover([&](auto job) { ready.push_back(job); },
                            [&](auto o) { open.push_back(o); },
                            [&](auto s) { expanding.push_back(s); })
                  .ok());
  ASSERT_EQ(ready.size(), 2u);
  EXPECT_EQ(ready[0].job_id, 2);
  EXPECT_EQ(ready[0].sweep_id, sweep);
  EXPECT_EQ(ready[0].ordinal, 1);
  EXPECT_EQ(ready[0].priority, 7);
  EXPECT_EQ(ready[0].requirement.pe_version, 2);
  EXPECT_EQ(ready[0].requirement.task_version, 3);
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].assignment.token, 5u);
  EXPECT_EQ(open[0].worker_id, "w");
  EXPECT_TRUE(open[0].started);
  ASSERT_EQ(expanding.size(), 1u);
  EXPECT_EQ(expanding[0].document, "the document");
  EXPECT_EQ(expanding[0].expanded_cells, 1u);
  EXPECT_EQ(Text("SELECT state FROM workers"), "offline");
  // The count of open jobs was rebuilt: the sweep still ends when they do.
  EXPECT_EQ(Event(attempt.Next(MakeEpoch(2))).status, EventStored::kStored);
  Event(attempt.Next(Matrix()));
  Event(attempt.Next(Finished{}));
  EXPECT_EQ(SweepState(sweep), "active");
  Do<Cancelled>(CancelJob{2, 1});
  EXPECT_EQ(SweepState(sweep), "finished");
}

TEST_P(StoreFileTest, TheFileSaysWhatItIs) {
  EXPECT_EQ(Text("PRAGMA application_id"), absl::StrCat(views::kApplicationId));
  EXPECT_EQ(Text("PRAGMA user_version"), absl::StrCat(views::kSchemaVersion));
  EXPECT_EQ(Text("PRAGMA journal_mode"), "wal");
  EXPECT_EQ(Text("PRAGMA synchronous"), "2");
  EXPECT_EQ(Text("PRAGMA foreign_keys"), "1");
}

TEST_P(StoreFileTest, ADatabaseFromANewerVersionIsRefusedUnchanged) {
  Text("PRAGMA user_version = 4711");
  store_.reset();
  const auto refused = Store::Open(path_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("schema 4711"));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr(absl::StrCat("up to ", views::kSchemaVersion)));
}

TEST_P(StoreFileTest, ForeignFilesAreRefusedUnchanged) {
  const std::string text_file = directory_ + "/notes.txt";
  const std::string content =
      "not a database, but long enough to have an SQLite header; " + std::string(200, '.');
  std::ofstream(text_file) << content;
  const auto refused = Store::Open(text_file);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  std::ifstream again(text_file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}), content);

  const std::string other = directory_ + "/other.db";
  {
    SQLite::Database db(other, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec("CREATE TABLE theirs (x)");
  }
  const auto theirs = Store::Open(other);
  EXPECT_EQ(theirs.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(theirs.status().message()), HasSubstr("not one of pelab's"));
  EXPECT_EQ(Store::Open(directory_ + "/no/such/dir.db").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_P(StoreFileTest, AFullDiskAcknowledgesNothingAndServiceResumes) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 1);
  const std::string pages = Text("PRAGMA page_count");
  Text("PRAGMA max_page_count = " + pages);
  std::vector<Write> writes = {attempt.Next(MakeEpoch(1))};
  writes.push_back(AppendLog{attempt.id, attempt.token, 0, std::string(1 << 20, 'x')});
  const auto full = store_->Apply(writes);
  EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted) << full.status();
  EXPECT_EQ(Text("SELECT count(*) FROM curves"), "1");
  Text("PRAGMA max_page_count = 1000000");
  const auto again = store_->Apply(writes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(std::get<EventStored>(*again->front()).status, EventStored::kStored);
}

}  // namespace
}  // namespace pelab::store
