// Attempts and their events: fencing, sequence numbers, allowed contents, budgets.
#include "server/limits.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using state::JobState;
using state::Outcome;
using testing::ElementsAre;
using testing::HasSubstr;

class FencingTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Backends, FencingTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(FencingTest, AWholeAttemptSucceeds) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")});
  ASSERT_EQ(slice_.ready.size(), 1u);
  EXPECT_EQ(SweepState(sweep), "active");
  Attempt attempt = Assign(1);
  EXPECT_EQ(JobState(1), "assigned");
  EXPECT_THAT(assignment_.analyses, ElementsAre(Analysis{"head_ablation", 2, kParameters}));
  Train(attempt, 0, 3);
  EXPECT_EQ(JobState(1), "running");
  Event(attempt.Next(Matrix()));
  Event(attempt.Next(ArtifactEvent("weights.safetensors", std::string(64, 'a'), 12)));
  const EventStored end = Event(attempt.Next(SucceededEvent(9.5)));
  ASSERT_TRUE(end.change);
  EXPECT_EQ(end.change->state, JobState::kSucceeded);
  EXPECT_EQ(JobState(1), "succeeded");
  EXPECT_EQ(SweepState(sweep), "finished");
  EXPECT_EQ(Text("SELECT train_correct, train_total, test_correct, test_total, best_test_accuracy "
                 "= 42.0/97, wall_seconds, epochs_done, device FROM v_jobs"),
            "40 99 42 97 1 9.5 3 cpu");
  EXPECT_EQ(Text("SELECT train_loss = 1.0/3 FROM v_curves WHERE epoch = 0"), "1");
  EXPECT_EQ(Text("SELECT method, hygiene, split, layer, head, correct, total FROM v_head_ablation "
                 "WHERE layer = 1 AND head = 0"),
            "zero raw test 1 0 40 97");
  EXPECT_EQ(Text("SELECT outcome, start_epoch FROM v_attempts"), "succeeded 0");
  EXPECT_EQ(Text("SELECT name, bytes FROM artifacts"), "weights.safetensors 12");
}

TEST_P(FencingTest, RepeatedEventsAreAcknowledgedAndChangeNothing) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 1);
  const std::string before = Text("SELECT * FROM stored_epochs") + Text("SELECT * FROM jobs");
  attempt.sequence = 1;
  const EventStored again = Event(attempt.Next(MakeEpoch(0, 13)));
  EXPECT_EQ(again.status, EventStored::kDuplicate);
  EXPECT_EQ(again.acknowledged, 2u);
  EXPECT_EQ(Text("SELECT * FROM stored_epochs") + Text("SELECT * FROM jobs"), before);
}

TEST_P(FencingTest, AGapIsRefusedAndSaysWhereToResendFrom) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 1);
  attempt.sequence += 1;
  const EventStored gap = Event(attempt.Next(MakeEpoch(2)));
  EXPECT_EQ(gap.status, EventStored::kGap);
  EXPECT_EQ(gap.acknowledged, 2u);
  EXPECT_EQ(Text("SELECT count(*) FROM stored_epochs"), "1");
  EXPECT_EQ(JobState(1), "running");
}

TEST_P(FencingTest, LateAndForeignTokensAreSuperseded) {
  Submit("a", {Cell(0, "k0")});
  Attempt first = Assign(1, 77);
  Train(first, 0, 2);
  EXPECT_TRUE(Do<EventStored>(EndAttempt{first.id, state::Event::kLose, "gone", 3000}).change);
  Attempt second = Assign(1, 88);
  EXPECT_EQ(assignment_.max_start_epoch, 2);
  EXPECT_EQ(Event(first.Next(MakeEpoch(2))).status, EventStored::kSuperseded);
  Attempt forged{second.id, 77};
  EXPECT_EQ(Event(forged.Next(StartedEvent(0, 3))).status, EventStored::kSuperseded);
  Attempt unknown{4711, 77};
  EXPECT_EQ(Event(unknown.Next(StartedEvent(0, 3))).status, EventStored::kSuperseded);
  EXPECT_EQ(Text("SELECT count(*) FROM stored_epochs"), "2");
  EXPECT_EQ(JobState(1), "assigned");
  EXPECT_EQ(Text("SELECT outcome, error FROM attempts WHERE number = 1"), "lost gone");
}

TEST_P(FencingTest, AnAttemptIsItsWorkersAlone) {
  Submit("a", {Cell(0, "k0")});
  const Attempt attempt = Assign(1);
  const auto send = [&](const char* worker, std::uint64_t sequence, EventBody body) {
    return Event(EventWrite(attempt.id, attempt.token, sequence, std::move(body), 5000, 0.5,
                            std::make_shared<const std::string>(worker)));
  };
  const auto log = [&](const char* worker) {
    Do<Nothing>(AppendLog{attempt.id, attempt.token, 0, "words",
                          std::make_shared<const std::string>(worker)});
    return Text("SELECT count(*) FROM logs");
  };
  EXPECT_EQ(send("w2", 1, StartedEvent(0, 3)).status, EventStored::kSuperseded);
  EXPECT_EQ(JobState(1), "assigned");
  EXPECT_EQ(send("w", 1, StartedEvent(0, 3)).status, EventStored::kStored);
  EXPECT_EQ(send("w2", 2, FailedEvent(state::ErrorKind::kOutOfMemory, "")).status,
            EventStored::kSuperseded);
  EXPECT_EQ(JobState(1), "running");
  EXPECT_EQ(log("w2"), "0");
  EXPECT_EQ(log("w"), "1");
}

TEST_P(FencingTest, TheAcceptedLineHasEveryEpochOnceOverRestartedAttempts) {
  Submit("a", {Cell(0, "k0")});
  Attempt first = Assign(1, 1);
  Train(first, 0, 2, /*correct=*/10);
  Do<EventStored>(EndAttempt{first.id, state::Event::kLose, "", 3000});
  Attempt second = Assign(1, 2);
  Train(second, 1, 2, /*correct=*/20);  // from its checkpoint of epoch 1
  EXPECT_EQ(Text("SELECT epochs_done, test_correct, best_test_correct FROM jobs"), "2 21 21");
  Do<EventStored>(EndAttempt{second.id, state::Event::kLose, "", 3000});
  Attempt third = Assign(1, 3);
  Event(third.Next(StartedEvent(2, 3)));
  EXPECT_EQ(Text("SELECT epochs_done, test_correct, best_test_correct FROM jobs"), "2 21 21");
  Event(third.Next(MakeEpoch(2, 30)));
  Event(third.Next(Matrix()));
  const EventStored end = Event(third.Next(SucceededEvent(1.0)));
  EXPECT_EQ(end.change->state, JobState::kSucceeded);
  EXPECT_EQ(Text("SELECT epoch, test_correct FROM v_curves ORDER BY epoch"), "0 10 1 21 2 32");
  EXPECT_EQ(Text("SELECT wall_seconds FROM jobs"), "5.0");     // two earlier epochs of 2 s
  EXPECT_EQ(Text("SELECT count(*) FROM stored_epochs"), "4");  // nothing was deleted
}

TEST_P(FencingTest, ASweepThatClaimsARunningJobCountsItsFurtherEpochs) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 1);
  Submit("b", {Cell(0, "k0")});
  EXPECT_EQ(Text("SELECT epochs_done FROM v_sweeps ORDER BY sweep_id"), "1 1");
  Event(attempt.Next(MakeEpoch(1)));
  EXPECT_EQ(Text("SELECT epochs_done FROM v_sweeps ORDER BY sweep_id"), "2 2");
}

TEST_P(FencingTest, AnAttemptGoesOnAfterOthersHaveEnded) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  Attempt first = Assign(1, 1);
  Attempt second = Assign(2, 2);
  Train(first, 0, 1);
  Train(second, 0, 2);
  Do<EventStored>(EndAttempt{first.id, state::Event::kLose, "", 3000});
  EXPECT_EQ(Event(first.Next(MakeEpoch(1))).status, EventStored::kSuperseded);
  EXPECT_EQ(Event(second.Next(MakeEpoch(2))).status, EventStored::kStored);
  EXPECT_EQ(Text("SELECT epochs_done FROM jobs ORDER BY job_id"), "1 3");
  EXPECT_EQ(Text("SELECT last_sequence FROM attempts ORDER BY attempt_id"), "2 4");
}

TEST_P(FencingTest, AStartFromScratchHidesWhatWasThere) {
  Submit("a", {Cell(0, "k0")});
  Attempt first = Assign(1, 1);
  Train(first, 0, 2, 30);
  Do<EventStored>(EndAttempt{first.id, state::Event::kLose, "", 3000});
  Attempt second = Assign(1, 2);
  EXPECT_EQ(Text("SELECT epochs_done FROM jobs"), "2");  // until the new attempt starts
  Event(second.Next(StartedEvent(0, 3)));
  EXPECT_EQ(Text("SELECT epochs_done, test_correct IS NULL, best_test_correct IS NULL FROM jobs"),
            "0 1 1");
  EXPECT_EQ(Text("SELECT count(*) FROM v_curves"), "0");
}

TEST_P(FencingTest, AnEnvironmentThatIsNoObjectIsNotKept) {
  const std::vector<std::string> bad = {"", "x", "[]", "{} {}", "3"};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(bad[i]);
    Submit(absl::StrCat("t", i), {Cell(0, absl::StrCat("k", i))});
    Attempt attempt = Assign(slice_.ready.front().job_id);
    EXPECT_EQ(Event(attempt.Next(StartedEvent(0, 3, bad[i]))).status, EventStored::kStored);
    EXPECT_EQ(Event(attempt.Next(MakeEpoch(0))).status, EventStored::kStored) << "it goes on";
  }
  Submit("good", {Cell(0, "good")});
  Attempt attempt = Assign(slice_.ready.front().job_id);
  Event(attempt.Next(StartedEvent(0, 3, R"({"libtorch":"2"})")));
  EXPECT_EQ(Text("SELECT count(*), max(environment_json) FROM attempts "
                 "WHERE environment_json IS NOT NULL"),
            R"(1 {"libtorch":"2"})");
}

TEST_P(FencingTest, AStartBeyondWhatIsStoredFailsTheAttempt) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  const EventStored refused = Event(attempt.Next(StartedEvent(1, 3)));
  EXPECT_EQ(refused.status, EventStored::kSuperseded);
  ASSERT_TRUE(refused.change);
  EXPECT_EQ(refused.change->outcome, Outcome::kFailed);
  ASSERT_TRUE(refused.change->ready.has_value());
  EXPECT_EQ(refused.change->ready->not_before, 5500);  // 1 s times the jitter of 0.5
  EXPECT_EQ(JobState(1), "queued");
  EXPECT_THAT(Text("SELECT error FROM attempts"), HasSubstr("only 0 epochs"));
}

TEST_P(FencingTest, EventsThatCannotBeEndTheAttempt) {
  const std::vector<EventBody> bad = {
      MakeEpoch(2),        // epoch 1 is due
      MakeEpoch(0),        // stored already
      StartedEvent(0, 3),  // a second hello
      FromText<v1::Epoch>("epoch: 1 train_correct: 5 train_total: 4 test_correct: 1 test_total: 4"),
      FromText<v1::Epoch>("epoch: 1 train_loss: -1 train_total: 4 test_total: 4"),
      FromText<v1::Epoch>("epoch: 1 train_total: 9223372036854775807 test_total: 4"),
      FromText<v1::Epoch>("epoch: 1 learning_rate: -1 train_total: 4 test_total: 4"),
      FromText<v1::Epoch>("epoch: 1 seconds: -0.5 train_total: 4 test_total: 4"),
      SucceededEvent(-5),
      SucceededEvent(std::numeric_limits<double>::infinity()),
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(i);
    Submit(absl::StrCat("t", i), {Cell(0, absl::StrCat("k", i))});
    Attempt attempt = Assign(slice_.ready.front().job_id);
    Train(attempt, 0, 1);
    const EventStored refused = Event(attempt.Next(bad[i]));
    EXPECT_EQ(refused.status, EventStored::kSuperseded);
    ASSERT_TRUE(refused.change);
    EXPECT_EQ(refused.change->outcome, Outcome::kFailed);
    EXPECT_EQ(Event(attempt.Next(MakeEpoch(1))).status, EventStored::kSuperseded);
  }
  EXPECT_EQ(Text("SELECT count(*) FROM stored_epochs"), absl::StrCat(bad.size()));
}

TEST_P(FencingTest, ALossThatIsNotFiniteFailsTheJobForGood) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Event(attempt.Next(StartedEvent(0, 3)));
  v1::Epoch epoch = MakeEpoch(0);
  epoch.set_train_loss(std::numeric_limits<double>::quiet_NaN());
  const EventStored refused = Event(attempt.Next(epoch));
  EXPECT_EQ(refused.change->state, JobState::kFailed);
  EXPECT_EQ(refused.change->error, state::ErrorKind::kNonFiniteLoss);
}

TEST_P(FencingTest, SuccessNeedsEveryEpochAndEveryAnalysis) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 2);
  const EventStored end = Event(attempt.Next(SucceededEvent()));
  EXPECT_EQ(end.status, EventStored::kStored);  // the worker is done with it
  EXPECT_EQ(end.change->outcome, Outcome::kFailed);
  EXPECT_EQ(JobState(1), "queued");
  const std::string error = Text("SELECT error FROM jobs");
  EXPECT_THAT(error, HasSubstr("epochs 2 to 2"));
  EXPECT_THAT(error, HasSubstr("head_ablation"));
}

TEST_P(FencingTest, FailuresAndLossesHaveTheirBudgets) {
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
    Event(attempt.Next(FailedEvent(state::ErrorKind::kTrainerDied, "died")));
  }
  EXPECT_EQ(Text("SELECT state, failed_attempts, lost_attempts, error FROM jobs WHERE job_id = 2"),
            "failed 3 0 died");
  Attempt attempt = Assign(3);
  Event(attempt.Next(FailedEvent(state::ErrorKind::kOutOfMemory, "too big")));
  EXPECT_EQ(JobState(3), "failed");  // at once
  EXPECT_EQ(SweepState(1), "finished");
}
TEST_P(FencingTest, LogsKeepTheirLast256KiB) {
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

TEST_P(FencingTest, PiecesOfALogThatOverlapAreKeptOnce) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  const std::string chunk(64 * 1024, 'x');
  for (std::uint64_t offset = 0; offset < 600; ++offset) {
    Do<Nothing>(AppendLog{attempt.id, attempt.token, offset, chunk});
  }
  Do<Nothing>(AppendLog{attempt.id, attempt.token, 0, chunk});
  EXPECT_EQ(Text("SELECT sum(length(data)), max(byte_offset + length(data)) FROM logs"),
            "66135 66135");  // 64 KiB and 599 bytes
}

TEST_P(FencingTest, PiecesOfALogBeyondEveryLogAreDropped) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  const std::string chunk(64 * 1024, 'x');
  Do<Nothing>(AppendLog{attempt.id, attempt.token, 0, chunk});
  for (const std::uint64_t beyond :
       {(std::uint64_t{1} << 62) + 3, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) + 300'000,
        std::numeric_limits<std::uint64_t>::max()}) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      Do<Nothing>(AppendLog{attempt.id, attempt.token, beyond - i, chunk});
    }
  }
  EXPECT_EQ(Text("SELECT sum(length(data)), min(byte_offset) FROM logs"), "65536 0");
}

TEST_P(FencingTest, ASuccessSaysWhatItLacks) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  Attempt without = Assign(1);
  Train(without, 0, 3);
  Event(without.Next(Matrix()));
  Event(without.Next(SucceededEvent(0, "the weights could not be uploaded: no room")));
  EXPECT_EQ(Text("SELECT state, warning FROM v_jobs WHERE job_id = 1"),
            "succeeded the weights could not be uploaded: no room");
  Attempt with = Assign(2);
  Train(with, 0, 3);
  Event(with.Next(Matrix()));
  Event(with.Next(SucceededEvent()));
  EXPECT_EQ(Text("SELECT warning IS NULL FROM v_jobs WHERE job_id = 2"), "1");
}

// Half a character would make the job's row, and with it every list that shows the job, unreadable.
TEST_P(FencingTest, ErrorsAndWarningsAreCutBetweenCharacters) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  const std::string most(limits::kErrorBytes - 1, 'x');
  Attempt fails = Assign(1);
  Event(fails.Next(FailedEvent(state::ErrorKind::kTrainerDied, most + "é and more")));
  EXPECT_EQ(Text("SELECT error FROM attempts"), most + "…");
  EXPECT_EQ(Text("SELECT error FROM jobs WHERE job_id = 1"), most + "…");
  Attempt lost = Assign(1, 2);
  Do<EventStored>(EndAttempt{lost.id, state::Event::kLose, "no longer at \xff", 3000});
  EXPECT_EQ(Text("SELECT error FROM jobs WHERE job_id = 1"), "no longer at ?");
  Attempt warns = Assign(2);
  Train(warns, 0, 3);
  Event(warns.Next(Matrix()));
  Event(warns.Next(SucceededEvent(0, most + "é and more")));
  EXPECT_EQ(Text("SELECT warning FROM jobs WHERE job_id = 2"), most + "…");
}

TEST_P(FencingTest, AWriteThatTheSchemaRefusesSpoilsNoOther) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  Attempt attempt = Assign(1);
  const std::vector<Write> writes = {
      attempt.Next(StartedEvent(0, 3)),
      CreateAttempt{.job_id = 2, .worker_id = "nobody"},  // REFERENCES workers
      attempt.Next(MakeEpoch(0)),
  };
  const auto results = store_->Apply(writes);
  ASSERT_TRUE(results.ok());
  EXPECT_TRUE((*results)[0].ok());
  EXPECT_FALSE((*results)[1].ok());
  EXPECT_TRUE((*results)[2].ok());
  EXPECT_EQ(Text("SELECT count(*) FROM stored_epochs"), "1");
}

// An error of one write that is none of the schema's constraints.
TEST_P(FencingTest, AWriteThatATriggerRefusesSpoilsNoOther) {
  Submit("a", {Cell(0, "k0")});
  store_->database().connection().exec(
      "CREATE TRIGGER fails BEFORE INSERT ON sweeps WHEN NEW.name = 'bad' "
      "BEGIN SELECT json_extract('{', '$'); END");
  Attempt attempt = Assign(1);
  const std::vector<Write> writes = {
      attempt.Next(StartedEvent(0, 3)),
      SubmitSweep{.name = "bad", .client_token = "bad", .cells = 1},
      attempt.Next(MakeEpoch(0)),
  };
  const auto results = store_->Apply(writes);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE((*results)[0].ok());
  EXPECT_EQ((*results)[1].status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE((*results)[2].ok());
  EXPECT_EQ(Text("SELECT count(*) FROM stored_epochs"), "1");
}

// The file cannot grow while the writes are tried one by one.
TEST_P(FencingTest, AWriteThatFindsTheDiskFullIsNotRefusedItself) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  Attempt attempt = Assign(1, 1);
  const std::vector<Write> writes = {
      CreateAttempt{.job_id = 2, .worker_id = "nobody"},  // REFERENCES workers
      AppendLog{attempt.id, 1, 0, std::string(200'000, 'x')},
      attempt.Next(StartedEvent(0, 3)),
  };
  store_->database().connection().execAndGet("PRAGMA max_page_count = 1");
  const auto results = store_->Apply(writes);
  store_->database().connection().execAndGet("PRAGMA max_page_count = 1000000");
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ((*results)[1].status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ((*results)[2].status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Text("SELECT count(*) FROM logs"), "0");
}

TEST_P(FencingTest, HelloAnswersWhatIsHeld) {
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

}  // namespace
}  // namespace pelab::store
