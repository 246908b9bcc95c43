// The writing thread: order, durability before the answer, bounds, and shutdown.
#include "server/store/writer.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "server/store/database.h"
#include "tests/support/events.h"
#include "tests/support/gated_vfs.h"

namespace pelab::store {
namespace {

class WriterTest : public testing::Test {
 protected:
  WriterTest() {
    std::string pattern = testing::TempDir() + "writerXXXXXX";
    directory_ = mkdtemp(pattern.data());
    store_ = *Store::Open(Path());
  }
  ~WriterTest() override { std::filesystem::remove_all(directory_); }

  std::string Path() const { return directory_ + "/pelab.db"; }
  static std::vector<Write> Sweep(const std::string& token, std::size_t bytes = 0) {
    std::vector<Write> writes;
    writes.emplace_back(
        SubmitSweep{.name = "s", .document = std::string(bytes, 'd'), .client_token = token});
    return writes;
  }
  // The number of sweeps that another process sees.
  std::int64_t StoredSweeps() {
    SQLite::Database db(Path(), SQLite::OPEN_READONLY);
    return db.execAndGet("SELECT count(*) FROM sweeps").getInt64();
  }

  std::string directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(WriterTest, AnswersInOrderOnceStored) {
  Writer writer(*store_);
  std::vector<std::int64_t> ids;  // used by the writing thread until the last answer
  Notification done;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(writer
                    .Append(
                        Sweep(absl::StrCat("t", i)),
                        [&, i](absl::StatusOr<std::vector<ApplyResult>> results) {
                          ASSERT_TRUE(results.ok());
                          ids.push_back(std::get<SweepStored>(*results->front()).sweep_id);
                          if (i == 199) done.Notify();
                        },
                        Journal::Urgency::kBounded)
                    .ok());
  }
  done.Wait();
  EXPECT_EQ(StoredSweeps(), 200);
  ASSERT_EQ(ids.size(), 200u);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_LT(writer.commits(), 200u) << "what queues together is committed together";
}

TEST_F(WriterTest, RefusesWhatIsTooMuchButNotTheCoordinatorsOwn) {
  Writer writer(*store_, {.max_queued_bytes = 100'000});
  Notification first_runs;
  Notification go_on;
  const auto hold = [&](const auto&) {
    first_runs.Notify();
    go_on.Wait();
  };
  const auto ignore = [](const auto&) {};
  ASSERT_TRUE(writer.Append(Sweep("a"), hold, Journal::Urgency::kBounded).ok());
  first_runs.Wait();
  ASSERT_TRUE(writer.Append(Sweep("b", 90'000), ignore, Journal::Urgency::kBounded).ok());
  const absl::Status refused =
      writer.Append(Sweep("c", 90'000), ignore, Journal::Urgency::kBounded);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(writer.Append(Sweep("d", 90'000), ignore, Journal::Urgency::kInternal).ok());
  go_on.Notify();
  writer.Stop();
  EXPECT_EQ(StoredSweeps(), 3);
}

// So that an event never waits for the slices of several sweeps.
TEST_F(WriterTest, ACommitHasOneLongWriteAtMostAndShortOnesDoNotWaitForMore) {
  Writer writer(*store_);
  Notification first_runs;
  Notification go_on;
  std::vector<std::string> order;  // used by the writing thread until it has stopped
  const auto append = [&](const std::string& name, Write write) {
    std::vector<Write> writes;
    writes.push_back(std::move(write));
    return writer.Append(
        std::move(writes),
        [&, name](const auto& results) {
          EXPECT_TRUE(results.ok());
          order.push_back(absl::StrCat(name, " in commit ", writer.commits()));
          if (name != "first") return;
          first_runs.Notify();
          go_on.Wait();
        },
        Journal::Urgency::kBounded);
  };
  ASSERT_TRUE(append("first", SubmitSweep{.name = "s", .client_token = "t"}).ok());
  first_runs.Wait();
  ASSERT_TRUE(append("drop 1", DropSlice{.sweep_id = 1}).ok());
  ASSERT_TRUE(append("cancel 2", CancelSweep{.sweep_id = 2}).ok());
  ASSERT_TRUE(append("drop 2", DropSlice{.sweep_id = 2}).ok());
  ASSERT_TRUE(append("short 1", EndAttempt{.attempt_id = 1}).ok());
  ASSERT_TRUE(append("short 2", EndAttempt{.attempt_id = 2}).ok());
  go_on.Notify();
  writer.Stop();
  EXPECT_EQ(order, (std::vector<std::string>{"first in commit 1", "short 1 in commit 2",
                                             "short 2 in commit 2", "drop 1 in commit 2",
                                             "cancel 2 in commit 3", "drop 2 in commit 4"}));
}

TEST_F(WriterTest, AQuestionWithoutWritesIsAnsweredInItsTurnWithoutACommit) {
  Writer writer(*store_);
  std::int64_t seen = 0;  // used by the writing thread until the last answer
  Notification done;
  const auto look = [&](const auto& results) {
    EXPECT_TRUE(results.ok() && results->empty());
    seen = StoredSweeps();
    done.Notify();
  };
  ASSERT_TRUE(writer
                  .Append(
                      Sweep("a"), [](const auto&) {}, Journal::Urgency::kBounded)
                  .ok());
  ASSERT_TRUE(writer.Append({}, look, Journal::Urgency::kInternal).ok());
  done.Wait();
  EXPECT_EQ(seen, 1);
  const std::uint64_t commits = writer.commits();
  Notification again;
  ASSERT_TRUE(writer
                  .Append(
                      {}, [&](const auto&) { again.Notify(); }, Journal::Urgency::kInternal)
                  .ok());
  again.Wait();
  EXPECT_EQ(writer.commits(), commits);
}

TEST_F(WriterTest, StoppingStoresWhatIsQueuedAndEmptiesTheWal) {
  Writer writer(*store_);
  int answered = 0;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(writer
                    .Append(
                        Sweep(absl::StrCat("t", i)), [&](const auto&) { ++answered; },
                        Journal::Urgency::kBounded)
                    .ok());
  }
  writer.Stop();
  EXPECT_EQ(answered, 50);
  EXPECT_EQ(StoredSweeps(), 50);
  EXPECT_EQ(std::filesystem::file_size(Path() + "-wal"), 0u);
  EXPECT_EQ(writer
                .Append(
                    Sweep("late"), [](const auto&) {}, Journal::Urgency::kBounded)
                .code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(WriterTest, TheLogStaysSmallHoweverMuchIsWritten) {
  constexpr int kSweeps = 300;
  constexpr std::size_t kBytes = 16 << 10;
  Writer writer(*store_, {.gather = absl::ZeroDuration(), .checkpoint_bytes = 64 << 10});
  std::uintmax_t largest = 0;
  for (int i = 0; i < kSweeps; ++i) {
    Notification stored;
    ASSERT_TRUE(writer
                    .Append(
                        Sweep(absl::StrCat("t", i), kBytes),
                        [&stored](const auto& results) {
                          EXPECT_TRUE(results.ok());
                          stored.Notify();
                        },
                        Journal::Urgency::kBounded)
                    .ok());
    stored.Wait();
    largest = std::max(largest, std::filesystem::file_size(Path() + "-wal"));
  }
  EXPECT_LT(largest, kSweeps * kBytes / 3) << "all of it would be " << kSweeps * kBytes;
  writer.Stop();
  EXPECT_EQ(StoredSweeps(), kSweeps);
}

// A disk may copy pages into the database more slowly than writes come.
TEST_F(WriterTest, WritingWaitsForAWalCheckpointThatIsFarBehind) {
  constexpr int kSweeps = 100;
  constexpr std::int64_t kLimit = 64 << 10;
  GatedVfs gate;
  const std::string path = directory_ + "/gated.db";
  StoreOptions options;
  options.vfs = GatedVfs::kName;
  const std::unique_ptr<Store> store = *Store::Open(path, options);
  Writer writer(*store,
                {.gather = absl::ZeroDuration(), .batch_bytes = 1, .checkpoint_bytes = kLimit});
  gate.Shut();
  std::atomic<std::uintmax_t> bytes = 0;
  int answered = 0;  // used by the writing thread
  Notification all;
  for (int i = 0; i < kSweeps; ++i) {
    EXPECT_TRUE(writer
                    .Append(
                        Sweep(absl::StrCat("t", i), 16 << 10),
                        [&](const auto& results) {
                          EXPECT_TRUE(results.ok());
                          bytes = std::filesystem::file_size(path + "-wal");
                          if (++answered == kSweeps) all.Notify();
                        },
                        Journal::Urgency::kBounded)
                    .ok());
  }
  EXPECT_FALSE(all.WaitFor(absl::Seconds(1)));
  EXPECT_LT(bytes, 16 * kLimit) << "all of it would be four megabytes";
  gate.Open();
  all.Wait();
}

// Small writes change whole pages: the WAL grows by much more than was queued.
TEST_F(WriterTest, TheLogStaysSmallHoweverSmallTheWritesAre) {
  constexpr int kSweeps = 400;
  constexpr std::int64_t kLimit = 256 << 10;
  Writer writer(*store_, {.gather = absl::ZeroDuration(), .checkpoint_bytes = kLimit});
  std::uintmax_t largest = 0;
  for (int i = 0; i < kSweeps; ++i) {
    Notification stored;
    ASSERT_TRUE(writer
                    .Append(
                        Sweep(absl::StrCat("t", i)), [&stored](const auto&) { stored.Notify(); },
                        Journal::Urgency::kBounded)
                    .ok());
    stored.Wait();
    largest = std::max(largest, std::filesystem::file_size(Path() + "-wal"));
  }
  EXPECT_GT(largest, kLimit / 2);
  EXPECT_LT(largest, 8 * kLimit) << "without WAL checkpoints, it would be several megabytes";
  EXPECT_EQ(StoredSweeps(), kSweeps);
}

TEST_F(WriterTest, EpochsMoveIntoTheirCurvesWhenNothingElseIsDone) {
  Writer writer(*store_);
  std::vector<Write> writes = Sweep("t");
  std::get<SubmitSweep>(writes.front()).analyses_json = "[]";
  std::get<SubmitSweep>(writes.front()).cells = 1;
  std::get<SubmitSweep>(writes.front()).first =
      ExpandSlice{.next = 1, .last = true, .cells = {{.key = "k", .spec_json = "{}", .epochs = 3}}};
  writes.emplace_back(WorkerHello{.worker_id = "w", .slots_json = "[]", .capabilities_json = "{}"});
  writes.emplace_back(CreateAttempt{.job_id = 1, .worker_id = "w", .device = "cpu", .token = 7});
  writes.emplace_back(EventWrite(1, 7, 1, StartedEvent(0, 3)));
  writes.emplace_back(EventWrite(1, 7, 2, OneWrong()));
  Notification stored;
  ASSERT_TRUE(writer
                  .Append(
                      std::move(writes),
                      [&stored](absl::StatusOr<std::vector<ApplyResult>> results) {
                        EXPECT_EQ(std::get<EventStored>(*results->back()).status,
                                  EventStored::kStored);
                        stored.Notify();
                      },
                      Journal::Urgency::kBounded)
                  .ok());
  stored.Wait();
  const auto count = [this](const char* table) {
    SQLite::Database db(Path(), SQLite::OPEN_READONLY);
    return db.execAndGet(absl::StrCat("SELECT count(*) FROM ", table)).getInt64();
  };
  EXPECT_EQ(count("v_curves"), 1);
  for (int tries = 0; tries < 500 && count("curves") == 0; ++tries) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(count("curves"), 1);
  EXPECT_EQ(count("v_curves"), 1);
}

TEST_F(WriterTest, AFullDiskIsToldOnceAndItsEndToo) {
  std::vector<bool> changes;  // used by the writing thread
  {
    Writer writer(*store_, {.on_change = [&](bool works) { changes.push_back(works); }});
    const auto append = [&](std::size_t bytes) {
      Notification done;
      absl::Status status;
      EXPECT_TRUE(writer
                      .Append(
                          Sweep(absl::StrCat("t", bytes), bytes),
                          [&](absl::StatusOr<std::vector<ApplyResult>> results) {
                            status = results.status();
                            done.Notify();
                          },
                          Journal::Urgency::kBounded)
                      .ok());
      done.Wait();
      return status;
    };
    EXPECT_TRUE(append(1).ok());
    SQLite::Database& db = store_->database().connection();
    db.exec(absl::StrCat("PRAGMA max_page_count = ", db.execAndGet("PRAGMA page_count").getInt()));
    for (int i = 0; i < 3; ++i) {
      const absl::Status full = append((1 << 20) + i);
      EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
      EXPECT_NE(full.message().find("its disk is full; free some space"), full.message().npos);
    }
    db.exec("PRAGMA max_page_count = 1000000");
    EXPECT_TRUE(append(1 << 20).ok());
    EXPECT_TRUE(append(2 << 20).ok());
  }
  EXPECT_EQ(changes, (std::vector<bool>{false, true}));
  EXPECT_EQ(StoredSweeps(), 3);
}

TEST_F(WriterTest, TellsOfEachCommitAndWhetherTheLastOneSucceeded) {
  std::vector<bool> commits;  // used by the writing thread
  {
    Writer writer(*store_, {.on_commit = [&](absl::Duration took, const auto& results) {
      EXPECT_GE(took, absl::ZeroDuration());
      commits.push_back(results.ok());
    }});
    const auto append = [&](std::size_t bytes) {
      Notification done;
      EXPECT_TRUE(writer
                      .Append(
                          Sweep(absl::StrCat("t", bytes), bytes),
                          [&](const auto&) { done.Notify(); }, Journal::Urgency::kBounded)
                      .ok());
      done.Wait();
    };
    EXPECT_TRUE(writer.works());
    append(1);
    EXPECT_TRUE(writer.works());
    EXPECT_EQ(writer.queued_bytes(), 0u);
    SQLite::Database& db = store_->database().connection();
    db.exec(absl::StrCat("PRAGMA max_page_count = ", db.execAndGet("PRAGMA page_count").getInt()));
    append(1 << 20);
    EXPECT_FALSE(writer.works());
    db.exec("PRAGMA max_page_count = 1000000");
    append(2 << 20);
    EXPECT_TRUE(writer.works());
  }
  EXPECT_EQ(commits, (std::vector<bool>{true, false, true}));
}

}  // namespace
}  // namespace pelab::store
