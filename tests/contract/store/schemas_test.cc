// Migrations from every schema that was ever committed: nothing is lost, and a migration that is
// killed leaves the old schema or the new one.
#include <cstdint>
#include <vector>

#include "core/db/check/check.h"
#include "migrations/migrate.h"
#include "migrations/migrations.h"
#include "tests/contract/store/old_databases.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using testing::HasSubstr;

class SchemaTest : public testing::TestWithParam<int> {
 protected:
  SchemaTest() {
    std::string pattern = testing::TempDir() + "schemaXXXXXX";
    directory_ = mkdtemp(pattern.data());
    path_ = directory_ + "/pelab.db";
    WriteOldDatabase(path_, GetParam());
  }
  ~SchemaTest() override { std::filesystem::remove_all(directory_); }

  static std::string Text(const std::string& path, const std::string& sql) {
    SQLite::Database db(path, SQLite::OPEN_READWRITE);
    SQLite::Statement statement(db, sql);
    std::string all;
    while (statement.executeStep()) {
      for (int i = 0; i < statement.getColumnCount(); ++i) {
        absl::StrAppend(&all, statement.getColumn(i).getString(), " ");
      }
    }
    return all;
  }
  // The contents that no migration may change.
  static std::string Contents(const std::string& path) {
    std::string all;
    for (const char* sql :
         {"SELECT job_id, key, generation, state, seed, epochs, attempts, spec_json FROM v_jobs",
          "SELECT * FROM v_curves", "SELECT sweep_id, name, state, document, cells FROM sweeps",
          "SELECT sweep_id, ordinal, job_id, claimed FROM sweep_jobs",
          "SELECT attempt_id, outcome, token, last_sequence FROM attempts",
          "SELECT job_id, method, layer, head, correct, total FROM v_head_ablation",
          "SELECT attempt_id, name, sha256, bytes FROM artifacts", "SELECT host FROM workers"}) {
      absl::StrAppend(&all, Text(path, sql), "\n");
    }
    return all;
  }
  static void ExpectSound(const std::string& path) {
    const auto checks = db::CheckDatabase(path);
    ASSERT_TRUE(checks.ok()) << checks.status();
    for (const db::Check& check : *checks) {
      if (check.name == "artifacts are there at their size") continue;  // there are no files here
      EXPECT_THAT(check.problems, testing::IsEmpty()) << check.name;
    }
  }

  std::string directory_;
  std::string path_;
};

std::vector<int> EverySchema() {
  std::vector<int> versions;
  for (const migrations::Migration& step : migrations::All()) versions.push_back(step.version);
  return versions;
}
INSTANTIATE_TEST_SUITE_P(Every, SchemaTest, testing::ValuesIn(EverySchema()));

TEST_P(SchemaTest, OpeningMigratesWithEverythingInIt) {
  const std::string before = Contents(path_);
  ASSERT_THAT(before, HasSubstr("succeeded"));
  {
    auto store = Store::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    int ready = 0;
    int open = 0;
    ASSERT_TRUE((*store)
                    ->Recover([](const auto&) {}, [&](const auto&) { ++ready; },
                              [&](const auto&) { ++open; }, [](const auto&) {})
                    .ok());
    EXPECT_EQ(ready, 1);
    EXPECT_EQ(open, 1);
  }
  EXPECT_EQ(Text(path_, "PRAGMA user_version"), absl::StrCat(db::kSchemaVersion, " "));
  EXPECT_EQ(Contents(path_), before);
  ExpectSound(path_);
}

TEST_P(SchemaTest, TheCommandSaysFromWhereToWhere) {
  const auto done = migrations::MigrateFile(path_);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->from, GetParam());
  EXPECT_EQ(done->to, db::kSchemaVersion);
  EXPECT_FALSE(std::filesystem::exists(path_ + "-wal"));
  EXPECT_EQ(*migrations::SchemaOfFile(path_), db::kSchemaVersion);
  ExpectSound(path_);
}

// Cuts the write-ahead log at every frame and within every frame, like a kill or a power loss.
TEST_P(SchemaTest, KilledAtAnyPointItIsOldOrNew) {
  const std::string before = Contents(path_);
  SQLite::Database db(path_, SQLite::OPEN_READWRITE);
  migrations::SetUpWriting(db);
  ASSERT_TRUE(migrations::Migrate(db, path_).ok());
  std::stringstream wal;
  wal << std::ifstream(path_ + "-wal", std::ios::binary).rdbuf();
  const std::string log = wal.str();
  constexpr std::size_t kHeader = 32;
  constexpr std::size_t kFrame = 24 + 4096;
  if (GetParam() == db::kSchemaVersion) {
    EXPECT_EQ(log, "") << "there was nothing to do";
    return;
  }
  ASSERT_GT(log.size(), kHeader + 2 * kFrame) << "it is cut in the middle of something";
  const std::string copy = directory_ + "/cut.db";
  std::vector<int> seen;
  for (std::size_t end = 0; end <= log.size(); end += (end % kFrame == kHeader ? 100 : 0) + 1) {
    // Every frame boundary, and 1 byte and 101 bytes after it.
    const std::size_t in_frame = end < kHeader ? end : (end - kHeader) % kFrame;
    if (in_frame > 101) end += kFrame - in_frame;
    if (end > log.size()) break;
    std::filesystem::copy_file(path_, copy, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::remove(copy + "-shm");
    std::ofstream(copy + "-wal", std::ios::binary | std::ios::trunc) << log.substr(0, end);
    const auto schema = migrations::SchemaOfFile(copy);
    ASSERT_TRUE(schema.ok()) << schema.status();
    if (seen.empty() || seen.back() != *schema) seen.push_back(*schema);
    ASSERT_EQ(Text(copy, "PRAGMA integrity_check"), "ok ");
    ASSERT_EQ(Contents(copy), before) << "cut at " << end;
  }
  EXPECT_THAT(seen, testing::ElementsAre(GetParam(), db::kSchemaVersion));
}

TEST_P(SchemaTest, ANewerOneIsRefusedUnchanged) {
  Text(path_, "PRAGMA user_version = 4711");
  std::stringstream before;
  before << std::ifstream(path_, std::ios::binary).rdbuf();
  for (const absl::Status& status :
       {migrations::MigrateFile(path_).status(), migrations::SchemaOfFile(path_).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("newer version of pelab (schema 4711"));
  }
  std::stringstream after;
  after << std::ifstream(path_, std::ios::binary).rdbuf();
  EXPECT_EQ(before.str(), after.str());
  EXPECT_EQ(migrations::MigrateFile(directory_ + "/none.db").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace pelab::store
