// `pelab db check`: every promise can be broken, and is named when it is.
#include "core/db/check/invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/base/utf8.h"
#include "core/db/check/check.h"
#include "tests/unit/core/db/database_fixture.h"

namespace pelab::db {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kWhole[] = "the file is a sound SQLite database";
constexpr char kReferences[] = "references lead somewhere";
constexpr char kArtifacts[] = "artifacts are there at their size";

// Two sweeps. One is finished, with a job that succeeded at its second attempt. The other is
// active, with that job, a running job that has an epoch, and a queued job.
class Populated {
 public:
  Populated() {
    const auto done = file_.AddJob({.key = "a1", .epochs = 2});
    file_.AddEpoch(file_.AddAttempt(done, 1, 0, "lost"), 0, 240);
    const auto trained = file_.AddAttempt(done, 2, 1, "succeeded");
    file_.AddEpoch(trained, 1, 250);
    file_.Summarize(done, 2, 250, 250, 300);
    file_.Execute("UPDATE jobs SET train_correct = 250");
    file_.AddHeadAblation(done, trained, 2, 3, 250, 300);
    file_.AddArtifact(trained, "weights.safetensors", kHash, 7);
    WriteArtifact("weights");
    const auto runs = file_.AddJob({.key = "b2", .seed = 1, .state = "running", .epochs = 2});
    file_.AddEpoch(file_.AddAttempt(runs, 1, 0, ""), 0, 240);
    file_.Summarize(runs, 1, 240, 240, 300);
    const auto waits = file_.AddJob({.key = "c3", .seed = 2, .state = "queued", .epochs = 2});
    file_.Execute("UPDATE jobs SET attempts = 0 WHERE state = 'queued'");
    file_.AddToSweep(file_.AddSweep("finished", "finished"), 0, done);
    const auto active = file_.AddSweep("active");
    for (const auto job : {done, runs, waits}) {
      file_.AddToSweep(active, static_cast<int>(job), job);
    }
    AddSheet();
  }

  // Two rounds of a sheet with two claims, of which the second is given up in the first round, and
  // an open round.
  void AddSheet() {
    file_.Execute(
        "INSERT INTO sheets VALUES (1, 's', 'hash', '', '', '', 3, 3, 1, '', 0, 1); "
        "INSERT INTO sheet_rounds VALUES (1, 1, 3, 4, '[0]', 0, 1), (1, 2, 4, 6, '[0]', 1, 2), "
        "(1, 3, 6, 8, '[0]', 2, NULL); "
        "INSERT INTO sheet_claims (sheet_id, round, position, claim, standing, verdict, seeds, "
        "eligible, exploratory, log_e_holds, log_e_fails, log_threshold) VALUES "
        "(1, 1, 0, 'a', 'open', 'undecided', 1, 1, 0, 0.4, -0.7, 3.7), "
        "(1, 1, 1, 'b', 'futile', 'undecided', 1, 1, 0, 0.4, -0.7, 3.7), "
        "(1, 2, 0, 'a', 'open', 'undecided', 3, 3, 0, 1.3, -1.4, 3.7), "
        "(1, 2, 1, 'b', 'futile', 'undecided', 1, 1, 0, 0.4, -0.7, 3.7)");
  }

  std::vector<Check> Checks() {
    const auto checks = CheckDatabase(file_.path());
    EXPECT_TRUE(checks.ok()) << checks.status();
    return checks.value_or(std::vector<Check>());
  }
  static std::vector<std::string> Broken(const std::vector<Check>& checks) {
    std::vector<std::string> broken;
    for (const Check& check : checks) {
      if (!check.problems.empty()) broken.push_back(check.name);
    }
    return broken;
  }
  std::vector<std::string> Broken() { return Broken(Checks()); }
  std::string ArtifactFile() const { return *ArtifactPath(file_.path(), kHash); }
  void WriteArtifact(const std::string& data) {
    std::filesystem::create_directories(std::filesystem::path(ArtifactFile()).parent_path());
    std::ofstream(ArtifactFile()) << data;
  }
  DatabaseForTest& file() { return file_; }

  inline static const std::string kHash = std::string(64, 'd');

 private:
  DatabaseForTest file_;
};

TEST(InvariantsTest, APopulatedFileIsSound) {
  Populated populated;
  for (const Check& check : populated.Checks()) {
    EXPECT_THAT(check.problems, IsEmpty()) << check.name;
    EXPECT_THAT(check.notes, IsEmpty()) << check.name;
  }
}

struct Damage {
  const char* sql;
  std::vector<std::string> breaks;  // the first one is the promise that the damage targets
  bool of_schema = false;           // files with another schema are refused before they are checked
};

// Job 1 has succeeded, job 2 runs (attempt 3), job 3 is queued. Sweep 1 is finished, sweep 2
// active.
const std::vector<Damage> kDamages = {
    {"DELETE FROM curves WHERE attempt_id = 1",
     {"epochs have no gap and none is there twice", "trained jobs have every epoch",
      "summaries agree with the curves"}},
    {"INSERT INTO curves SELECT attempt_id, 0, train_loss, train_correct, train_total, test_loss, "
     "test_correct, test_total, learning_rate, seconds, NULL, NULL FROM curves WHERE attempt_id = "
     "2",
     {"epochs have no gap and none is there twice", "trained jobs have every epoch",
      "summaries agree with the curves"}},
    {"UPDATE jobs SET epochs = 3 WHERE job_id = 1", {"trained jobs have every epoch"}},
    {"UPDATE sweep_counts SET queued = 0, succeeded = 2 WHERE sweep_id = 2",
     {"the counts of a sweep are those of its jobs"}},
    {"UPDATE jobs SET epochs_done = 0 WHERE job_id = 2", {"summaries agree with the curves"}},
    {"UPDATE jobs SET test_correct = 1 WHERE job_id = 2",
     {"final accuracies are those of the last epoch"}},
    {"UPDATE jobs SET train_total = NULL WHERE job_id = 1",
     {"final accuracies are those of the last epoch"}},
    {"UPDATE jobs SET train_eval_total = 10 WHERE job_id = 1",
     {"final accuracies are those of the last epoch"}},
    {"UPDATE jobs SET test_loss = NULL WHERE job_id = 2",
     {"final losses are those of the last epoch, and say which trainings diverged"}},
    {"UPDATE jobs SET diverged = 1 WHERE job_id = 1",
     {"final losses are those of the last epoch, and say which trainings diverged"}},
    {"UPDATE configurations SET divergence_loss = 0.01",
     {"final losses are those of the last epoch, and say which trainings diverged"}},
    {"UPDATE jobs SET best_test_correct = 240 WHERE job_id = 1",
     {"best accuracies are those of the best epoch"}},
    {"UPDATE jobs SET best_test_correct = 299 WHERE job_id = 1",
     {"best accuracies are those of the best epoch"}},
    {"UPDATE jobs SET best_test_correct = NULL WHERE job_id = 2",
     {"best accuracies are those of the best epoch"}},
    {"DELETE FROM head_ablation WHERE layer = 1 AND head = 1", {"ablation matrices are whole"}},
    {"UPDATE head_ablation SET lost = lost + 1 WHERE layer = 1 AND head = 1",
     {"ablated counts follow from each other"}},
    {"UPDATE head_ablation SET nll = NULL WHERE layer = 0 AND head = 1",
     {"entries of an ablation matrix exist whole or not at all"}},
    {"DELETE FROM deposit_indices WHERE layer = -1",
     {"ablation matrices have their deposit indices"}},
    {"PRAGMA writable_schema = ON; "
     "UPDATE sqlite_master SET sql = replace(sql, 'UNIQUE (key, generation)', 'UNIQUE (job_id)') "
     "WHERE name = 'jobs'; "
     "PRAGMA writable_schema = RESET; REINDEX; "
     "UPDATE jobs SET key = (SELECT key FROM jobs WHERE job_id = 1) WHERE job_id = 3",
     {"a key and generation is one job"},
     /*of_schema=*/true},
    {"UPDATE attempts SET outcome = 'succeeded' WHERE attempt_id = 1",
     {"a job was trained by one attempt"}},
    {"UPDATE jobs SET state = 'failed' WHERE job_id = 1",
     {"succeeded jobs are trained, and trained ones neither failed nor cancelled"}},
    {"UPDATE jobs SET state = 'cancelled' WHERE job_id = 1",
     {"succeeded jobs are trained, and trained ones neither failed nor cancelled"}},
    {"UPDATE attempts SET outcome = 'failed' WHERE attempt_id = 2",
     {"trained jobs have an attempt that succeeded"}},
    {"UPDATE attempts SET number = 4 WHERE attempt_id = 3",
     {"attempts are numbered from 1 and counted"}},
    {"UPDATE jobs SET attempts = 1 WHERE job_id = 3", {"attempts are numbered from 1 and counted"}},
    {"DROP INDEX attempts_open; UPDATE attempts SET outcome = NULL, ended_at = NULL "
     "WHERE attempt_id < 3",
     {"a job has at most one open attempt", "trained jobs have an attempt that succeeded"},
     /*of_schema=*/true},
    {"UPDATE attempts SET outcome = 'lost', ended_at = 7000 WHERE attempt_id = 3",
     {"jobs that are assigned or running have an open attempt"}},
    {"UPDATE jobs SET state = 'queued' WHERE job_id = 2",
     {"jobs that wait or have failed hold no open attempt"}},
    {"UPDATE jobs SET configuration_id = NULL WHERE job_id = 3", {"every job has its spec"}},
    {"DELETE FROM configurations", {"every job has its spec", kReferences}},
    {"INSERT INTO configurations (template) VALUES ('{}{}')",
     {"every configuration is that of a job"}},
    {"INSERT INTO checkpoints SELECT 2, 3, 99, sha256, bytes, 0 FROM artifacts",
     {"checkpoints are of jobs that still train, and not ahead of their curves"}},
    {"INSERT INTO checkpoints SELECT 1, 2, 1, sha256, bytes, 0 FROM artifacts",
     {"checkpoints are of jobs that still train, and not ahead of their curves"}},
    {"UPDATE attempts SET ended_at = NULL WHERE attempt_id = 1",
     {"ended attempts say when they ended, open ones do not"}},
    {"UPDATE sweeps SET state = 'active' WHERE sweep_id = 1", {"active sweeps wait for a job"}},
    {"UPDATE sweeps SET state = 'finished' WHERE sweep_id = 2",
     {"finished sweeps wait for no job"}},
    {"UPDATE sweeps SET state = 'cancelled' WHERE sweep_id = 2",
     {"cancelled sweeps claim nothing"}},
    {"UPDATE sweeps SET expanded_cells = 1 WHERE sweep_id = 2",
     {"sweeps hold the cells that were expanded; active ones hold all"}},
    {"DELETE FROM jobs WHERE job_id = 3", {kReferences}},
    {"UPDATE attempts SET worker_id = 'nobody' WHERE attempt_id = 3", {kReferences}},
    {"UPDATE artifacts SET attempt_id = 99", {kReferences}},
    {"UPDATE curves SET attempt_id = 99 WHERE attempt_id = 3",
     {kReferences, "summaries agree with the curves"}},
    {"UPDATE artifacts SET bytes = 8", {kArtifacts}},
    {"UPDATE artifacts SET sha256 = '../../../victim'", {"files are named by their SHA-256"}},
    {"UPDATE artifacts SET sha256 = sha256 || char(0) || 'x'",
     {"files are named by their SHA-256"}},
    {"INSERT INTO uploads VALUES (3, 'zz')", {"files are named by their SHA-256"}},
    {"INSERT INTO files VALUES ('zz', 1, 0)",
     {"files that specs may name are named by their SHA-256"}},
    {"UPDATE configurations SET template = '{\"pe\":{\"file\":\"ff\"}}'; "
     "UPDATE jobs SET pe = 'own'",
     {"files of own encodings and data are stored while jobs may need them"}},
    {"UPDATE configurations SET template = '{\"task\":{\"file\":\"ff\"}}'; "
     "UPDATE jobs SET task = 'own:parity'",
     {"files of own encodings and data are stored while jobs may need them"}},
    {"INSERT INTO staged_epochs SELECT 1, 3, 0, train_loss, train_correct, train_total, test_loss, "
     "test_correct, test_total, learning_rate, seconds, NULL, NULL FROM curves WHERE attempt_id = "
     "3",
     {"epochs that wait for their curve are of an attempt, and not in it yet",
      "epochs have no gap and none is there twice", "summaries agree with the curves"}},
    {"INSERT INTO staged_epochs SELECT 1, 99, 0, train_loss, train_correct, train_total, "
     "test_loss, test_correct, test_total, learning_rate, seconds, 1, 2 FROM curves LIMIT 1",
     {"epochs that wait for their curve are of an attempt, and not in it yet"}},
    {"UPDATE sheet_rounds SET first_seed = 5 WHERE round = 2",
     {"rounds follow one another, and only the last one is open"}},
    {"UPDATE sheet_rounds SET round = 4 WHERE round = 3",
     {"rounds follow one another, and only the last one is open"}},
    {"UPDATE sheet_rounds SET ended_at = NULL WHERE round = 2",
     {"rounds follow one another, and only the last one is open",
      "rounds that have ended say what every claim has come to"}},
    {"DELETE FROM sheet_claims WHERE round = 2 AND position = 1",
     {"rounds that have ended say what every claim has come to"}},
    {"UPDATE sheet_claims SET log_e_holds = 0.5 WHERE round = 2 AND position = 1",
     {"claims that get no more seeds keep their evidence"}},
    {"UPDATE sheet_claims SET claim = 'c' WHERE round = 1 AND position = 0",
     {"claims that get no more seeds keep their evidence"}},
    {"UPDATE sheet_claims SET standing = 'open' WHERE round = 2 AND position = 1",
     {"claims that get no more seeds keep their evidence"}},
    {"INSERT INTO audit VALUES (1, 0, '', '', '', '', 'OK', 1, '', 'no hash')",
     {"the record of acts is as it was written"}},
};

TEST(InvariantsTest, EachPromiseIsNamedWhereItIsBroken) {
  std::set<std::string> named;
  for (const Damage& damage : kDamages) {
    Populated populated;
    populated.file().Execute("PRAGMA foreign_keys = OFF");
    populated.file().Execute(damage.sql);
    if (damage.of_schema) {
      EXPECT_EQ(CheckDatabase(populated.file().path()).status().code(),
                absl::StatusCode::kFailedPrecondition);
    }
    const std::vector<std::string> broken =
        damage.of_schema ? Populated::Broken(CheckConnection(populated.file().db()))
                         : populated.Broken();
    EXPECT_THAT(broken, ::testing::UnorderedElementsAreArray(damage.breaks)) << damage.sql;
    named.insert(damage.breaks.front());
  }
  Populated sound;
  for (const Check& check : sound.Checks()) {
    if (check.name == kWhole) continue;
    EXPECT_THAT(named, Contains(check.name)) << "nothing here breaks it";
  }
}

TEST(InvariantsTest, AMissingFileIsAProblemAndOneTooManyIsANote) {
  Populated populated;
  const std::string file = populated.ArtifactFile();
  std::filesystem::rename(file, file.substr(0, file.size() - 1) + "e");
  // The mark of a shared store is neither.
  std::ofstream(std::filesystem::path(file).parent_path().parent_path() / "database") << "h:db\n";
  const std::vector<Check> checks = populated.Checks();
  EXPECT_EQ(checks.back().name, kArtifacts);
  EXPECT_THAT(checks.back().problems, ElementsAre(HasSubstr("is missing")));
  EXPECT_THAT(checks.back().notes, ElementsAre(HasSubstr("belongs to no attempt")));
}

// Overwrites pages, from the second one on, until SQLite notices.
TEST(InvariantsTest, ADamagedPageIsNamedOrTheFileRefused) {
  Populated populated;
  populated.file().Execute("PRAGMA wal_checkpoint(TRUNCATE)");
  populated.file().Close();
  const auto bytes = std::filesystem::file_size(populated.file().path());
  int found = 0;
  for (std::uintmax_t page = 4096; page < bytes; page += 4096) {
    const std::string copy = populated.file().directory() + "/copy.db";
    std::filesystem::copy_file(populated.file().path(), copy,
                               std::filesystem::copy_options::overwrite_existing);
    std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(page));
    file << std::string(512, '\xa5');
    file.close();
    const auto checks = CheckDatabase(copy);
    if (!checks.ok()) {
      EXPECT_EQ(checks.status().code(), absl::StatusCode::kDataLoss) << checks.status();
      EXPECT_THAT(std::string(checks.status().message()), HasSubstr("is damaged"));
      ++found;
      continue;
    }
    // A free or empty page may hold anything.
    if (checks->front().problems.empty()) continue;
    EXPECT_EQ(checks->size(), 1u) << "what is read from a damaged file misleads";
    ++found;
  }
  EXPECT_GT(found, 20) << "of " << bytes / 4096 << " pages";
}

// SQLite quotes the schema that it cannot parse.
TEST(InvariantsTest, ADamagedSchemaIsQuotedInUtf8) {
  Populated populated;
  populated.file().Execute("PRAGMA wal_checkpoint(TRUNCATE)");
  populated.file().Close();
  std::fstream file(populated.file().path(), std::ios::in | std::ios::out | std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::size_t at = bytes.find("CREATE TABLE jobs");
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(bytes.find("INTEGER", at)));
  file << "NUT\xfa";
  file.close();
  const auto checks = CheckDatabase(populated.file().path());
  ASSERT_EQ(checks.status().code(), absl::StatusCode::kDataLoss) << checks.status();
  const std::string said(checks.status().message());
  EXPECT_THAT(said, HasSubstr("is damaged (malformed database schema"));
  EXPECT_TRUE(IsUtf8(said)) << said;
}

}  // namespace
}  // namespace pelab::db
