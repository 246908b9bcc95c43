// The database file: its description of itself, its content after a restart, and files that are
// refused.
#include "migrations/schema.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using testing::HasSubstr;

class DatabaseFileTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(File, DatabaseFileTest, testing::Values(true));

TEST_P(DatabaseFileTest, WhatWasAppliedIsThereAfterAReopenAndRecovers) {
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
  std::vector<RecoveredSweep> sweeps;
  std::vector<ReadyJob> ready;
  std::vector<OpenAttempt> open;
  std::vector<ExpandingSweep> expanding;
  ASSERT_TRUE(
      store_
          ->Recover([&](auto s) { sweeps.push_back(s); }, [&](auto job) { ready.push_back(job); },
                    [&](auto o) { open.push_back(o); }, [&](auto s) { expanding.push_back(s); })
          .ok());
  ASSERT_EQ(ready.size(), 2u);
  EXPECT_EQ(ready[0].job_id, 2);
  EXPECT_EQ(ready[0].sweep_id, sweep);
  EXPECT_EQ(ready[0].ordinal, 1);
  ASSERT_EQ(sweeps.size(), 2u);
  EXPECT_EQ(sweeps[0].settings, (SweepSettings{sweep, 7, false}));
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
  // The count of open jobs was rebuilt: the sweep still ends when its jobs end.
  EXPECT_EQ(Event(attempt.Next(MakeEpoch(2))).status, EventStored::kStored);
  Event(attempt.Next(Matrix()));
  Event(attempt.Next(SucceededEvent()));
  EXPECT_EQ(SweepState(sweep), "active");
  Do<Cancelled>(CancelJob{2, 1});
  EXPECT_EQ(SweepState(sweep), "finished");
}

TEST_P(DatabaseFileTest, ALargeLogThatAKillLeftIsReadAtTheNextStart) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Do<Nothing>(AppendLog{attempt.id, attempt.token, 0, std::string(200 << 10, 'x')});
  Submit("b", {Cell(0, "k1")});
  const std::string killed = directory_ + "/killed.db";
  for (const char* part : {"", "-wal"}) std::filesystem::copy_file(path_ + part, killed + part);
  ASSERT_GT(std::filesystem::file_size(killed + "-wal"), 128u << 10);
  path_ = killed;
  Open();
  EXPECT_EQ(Text("SELECT count(*) FROM sweeps"), "2");
  EXPECT_EQ(Text("SELECT sum(length(data)) FROM logs"), absl::StrCat(200 << 10));
}

TEST_P(DatabaseFileTest, TheFileSaysWhatItIs) {
  EXPECT_EQ(Text("PRAGMA application_id"), absl::StrCat(migrations::kApplicationId));
  EXPECT_EQ(Text("PRAGMA user_version"), absl::StrCat(migrations::NewestSchema()));
  EXPECT_EQ(Text("PRAGMA journal_mode"), "wal");
  EXPECT_EQ(Text("PRAGMA synchronous"), "2");
  EXPECT_EQ(Text("PRAGMA foreign_keys"), "1");
}

TEST_P(DatabaseFileTest, ADatabaseFromANewerVersionIsRefusedUnchanged) {
  Text("PRAGMA user_version = 4711");
  store_.reset();
  const auto refused = Store::Open(path_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("its schema is version 4711"));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr(absl::StrCat("up to ", migrations::NewestSchema())));
}

TEST_P(DatabaseFileTest, ForeignFilesAreRefusedUnchanged) {
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
  EXPECT_THAT(std::string(theirs.status().message()), HasSubstr("is not a pelab database"));
  EXPECT_EQ(Store::Open(directory_ + "/no/such/dir.db").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_P(DatabaseFileTest, AFileThatWasMovedAwayIsNotWritten) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 1);
  const std::vector<Write> writes = {attempt.Next(MakeEpoch(1))};
  const auto expect_refused = [&] {
    const absl::Status refused = store_->Apply(writes).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr(path_ + " was removed or replaced while it is served"));
  };
  const std::string away = directory_ + "/away.db";
  std::filesystem::rename(path_, away);
  expect_refused();
  std::filesystem::copy_file(away, path_);  // another file of the same name
  expect_refused();
  std::filesystem::remove(path_);
  expect_refused();
  EXPECT_EQ(Text("SELECT count(*) FROM v_curves"), "1");
  std::filesystem::rename(away, path_);  // put back
  const auto again = store_->Apply(writes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(std::get<EventStored>(*again->front()).status, EventStored::kStored);
}

TEST_P(DatabaseFileTest, AFullDiskAcknowledgesNothingAndServiceResumes) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 1);
  const std::string pages = Text("PRAGMA page_count");
  Text("PRAGMA max_page_count = " + pages);
  std::vector<Write> writes = {attempt.Next(MakeEpoch(1))};
  writes.push_back(AppendLog{attempt.id, attempt.token, 0, std::string(1 << 20, 'x')});
  const auto full = store_->Apply(writes);
  EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted) << full.status();
  EXPECT_EQ(Text("SELECT count(*) FROM v_curves"), "1");
  Text("PRAGMA max_page_count = 1000000");
  const auto again = store_->Apply(writes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(std::get<EventStored>(*again->front()).status, EventStored::kStored);
}

}  // namespace
}  // namespace pelab::store
