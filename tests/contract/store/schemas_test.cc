// Migrations, in a program with one migration more than there are (tests/support/next_schema):
// nothing is lost, a migration that fails or is killed leaves the old schema or the new one, and
// files that cannot be used are refused unchanged.
#include <cstdint>
#include <thread>
#include <vector>

#include "core/db/backup/backup.h"
#include "core/db/check/check.h"
#include "core/db/import/import_reader.h"
#include "core/db/read/reader.h"
#include "migrations/migrate.h"
#include "migrations/migrations.h"
#include "migrations/objects.h"
#include "migrations/schema.h"
#include "tests/contract/store/old_databases.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using migrations::NewestSchema;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string Bytes(const std::string& path) {
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// Opens the file in each way that the programs have. Returns their statuses.
std::vector<absl::Status> OpenedByEveryone(const std::string& path) {
  return {migrations::MigrateFile(path).status(),
          migrations::SchemaOfFile(path).status(),
          Store::Open(path).status(),
          db::Reader::Open(path).status(),
          db::ImportReader::Open(path).status(),
          db::CheckDatabase(path).status(),
          db::Backup(path, path + "-copy").status()};
}

TEST(Migrations, AreNumberedFromTheFirstOn) {
  const auto all = migrations::All();
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].version, migrations::kFirstSchema + static_cast<int>(i)) << all[i].name;
    if (i + 1 < all.size()) {
      EXPECT_EQ(std::stoi(std::string(all[i].name.substr(0, 4))), static_cast<int>(i) + 1);
    }
  }
  EXPECT_EQ(all.back().name, "next.sql");
  EXPECT_EQ(NewestSchema(), all.back().version);
}

// Each row of `sql`, with its values quoted.
std::vector<std::string> Rows(SQLite::Database& db, const std::string& sql) {
  std::vector<std::string> rows;
  SQLite::Statement statement(db, sql);
  while (statement.executeStep()) {
    std::string& row = rows.emplace_back();
    for (int i = 0; i < statement.getColumnCount(); ++i) {
      absl::StrAppend(&row, "<", statement.getColumn(i).getString(), ">");
    }
  }
  return rows;
}

// Objects() and FirstRows() were written while pelab was built. The migrations themselves say here
// what they should be.
TEST(Objects, AreThoseThatTheMigrationsMake) {
  SQLite::Database db(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  for (const migrations::Migration& step : migrations::All()) {
    db.exec(std::string(step.sql));
    std::vector<std::string> objects;
    for (const migrations::Object& object : migrations::Objects()) {
      if (step.version < object.first || step.version > object.last) continue;
      std::string& row = objects.emplace_back();
      for (const std::string_view part : {object.type, object.name, object.table, object.sql}) {
        row.append("<").append(part).append(">");
      }
    }
    EXPECT_THAT(objects, testing::UnorderedElementsAreArray(
                             Rows(db, "SELECT type, name, tbl_name, sql FROM sqlite_master")))
        << step.name;
  }
}

TEST(Objects, MakeANewDatabaseLikeOneThatWasMigratedFromTheFirstSchemaOn) {
  SQLite::Database made(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  ASSERT_TRUE(migrations::Migrate(made, "new").ok());
  SQLite::Database migrated(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  for (const migrations::Migration& step : migrations::All()) migrated.exec(std::string(step.sql));
  const std::string tables =
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
  std::size_t rows = 0;
  for (const std::string& table : Rows(migrated, tables)) {
    const std::string all = absl::StrCat("SELECT * FROM ", table.substr(1, table.size() - 2));
    const std::vector<std::string> expected = Rows(migrated, all);
    EXPECT_THAT(Rows(made, all), testing::UnorderedElementsAreArray(expected)) << table;
    rows += expected.size();
  }
  EXPECT_GT(rows, 0u);
  const std::string objects = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid";
  EXPECT_EQ(Rows(made, objects), Rows(migrated, objects));
  EXPECT_EQ(migrations::SchemaOf(made, "new").value_or(0), NewestSchema());
}

TEST(Objects, AreComparedWithoutCommentsAndTheQuotesOfNames) {
  EXPECT_EQ(
      migrations::TokensOf("CREATE TABLE \"jobs\" ( -- all -- of them\n a INTEGER/* n */DEFAULT "
                           "'it''s -- x', [b],`c`,\"d e\",_f2)"),
      "CREATE TABLE jobs ( a INTEGER DEFAULT 'it''s -- x' , b , c , \"d e\" , _f2 )");
  EXPECT_EQ(migrations::TokensOf("  -- nothing"), "");
  EXPECT_EQ(migrations::TokensOf("'open"), "'open");
}

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
    return Text(db, sql);
  }
  static std::string Text(SQLite::Database& db, const std::string& sql) {
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
    SQLite::Database db(path, SQLite::OPEN_READWRITE);
    return Contents(db);
  }
  static std::string Contents(SQLite::Database& db) {
    std::string all;
    for (const char* sql :
         {"SELECT job_id, key, generation, state, seed, epochs, attempts, spec_json FROM v_jobs",
          "SELECT job_id, epoch, train_loss, train_accuracy, test_loss, test_accuracy, "
          "learning_rate, seconds, train_correct, train_total, test_correct, test_total "
          "FROM v_curves",
          "SELECT sweep_id, name, state, document, cells FROM sweeps",
          "SELECT sweep_id, ordinal, job_id, claimed FROM sweep_jobs",
          "SELECT attempt_id, outcome, token, last_sequence FROM attempts",
          "SELECT job_id, method, layer, head, correct, total FROM v_head_ablation",
          "SELECT attempt_id, byte_offset, data FROM v_logs",
          "SELECT attempt_id, name, sha256, bytes FROM artifacts", "SELECT host FROM workers"}) {
      absl::StrAppend(&all, Text(db, sql), "\n");
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
  EXPECT_EQ(Text(path_, "PRAGMA user_version"), absl::StrCat(NewestSchema(), " "));
  EXPECT_EQ(Contents(path_), before);
  ExpectSound(path_);
}

// Their table is made anew for a role that is added (0007_queues.sql).
TEST_P(SchemaTest, PrincipalsStayAsTheyAre) {
  constexpr int kWithPrincipals = 106;  // schemas/rows_106.sql
  const std::string before =
      GetParam() < kWithPrincipals ? "" : Text(path_, "SELECT * FROM principals ORDER BY name");
  ASSERT_TRUE(Store::Open(path_).ok());
  EXPECT_EQ(Text(path_, "SELECT * FROM principals ORDER BY name"), before);
  if (GetParam() >= kWithPrincipals) {
    EXPECT_THAT(before, HasSubstr("boss operator bb02 bb01"));
  }
}

// Their table is made anew for a standing that is added (0011_put_aside.sql) and gets columns.
TEST_P(SchemaTest, ClaimsStayAsTheyAre) {
  constexpr int kWithSheets = 110;  // schemas/rows_110.sql
  const std::string claims =
      "SELECT round, position, claim, standing, verdict, seeds, eligible, exploratory, "
      "log_e_holds, log_e_fails, log_threshold FROM sheet_claims ORDER BY round, position";
  if (GetParam() < kWithSheets) return;  // they have no sheets
  const std::string before = Text(path_, claims);
  EXPECT_THAT(before, HasSubstr("1 1 deposit futile not eligible 1 0 1 0.0 0.0 3.689"));
  ASSERT_TRUE(Store::Open(path_).ok());
  EXPECT_EQ(Text(path_, claims), before);
  EXPECT_EQ(Text(path_, "SELECT count(*) FROM v_sheet_claims WHERE leans_to IS NULL"), "2 ");
}

TEST_P(SchemaTest, TheCommandSaysFromWhereToWhere) {
  const auto done = migrations::MigrateFile(path_);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->from, GetParam());
  EXPECT_EQ(done->to, NewestSchema());
  EXPECT_FALSE(std::filesystem::exists(path_ + "-wal"));
  EXPECT_EQ(*migrations::SchemaOfFile(path_), NewestSchema());
  ExpectSound(path_);
}

// Cuts the write-ahead log at every frame and within every frame, like a kill or a power loss.
TEST_P(SchemaTest, KilledAtAnyPointItIsOldOrNew) {
  const std::string before = Contents(path_);
  SQLite::Database db(path_, SQLite::OPEN_READWRITE);
  migrations::SetUpWriting(db);
  ASSERT_TRUE(migrations::Migrate(db, path_).ok());
  const std::string log = Bytes(path_ + "-wal");
  constexpr std::size_t kHeader = 32;
  constexpr std::size_t kFrame = 24 + 4096;
  if (GetParam() == NewestSchema()) {
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
    SQLite::Database cut(copy, SQLite::OPEN_READWRITE);
    ASSERT_EQ(Text(cut, "PRAGMA integrity_check"), "ok ");
    ASSERT_EQ(Contents(cut), before) << "cut at " << end;
  }
  EXPECT_THAT(seen, testing::ElementsAre(GetParam(), NewestSchema()));
}

TEST_P(SchemaTest, AStepThatFailsLeavesTheFileAsItWas) {
  if (GetParam() == NewestSchema()) return;            // there is nothing to do
  Text(path_, "CREATE TABLE next_logs (in_the_way)");  // fails in the middle of the migration
  const std::string before = Contents(path_);
  const std::string tables = Text(path_, "SELECT sql FROM sqlite_master ORDER BY name");
  const auto done = migrations::MigrateFile(path_);
  EXPECT_EQ(done.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(done.status().message()),
              AllOf(HasSubstr("cannot migrate"), HasSubstr("next_logs already exists")));
  EXPECT_FALSE(Store::Open(path_).ok());
  EXPECT_EQ(*migrations::SchemaOfFile(path_), GetParam());
  EXPECT_EQ(Contents(path_), before);
  EXPECT_EQ(Text(path_, "SELECT sql FROM sqlite_master ORDER BY name"), tables);
  Text(path_, "DROP TABLE next_logs");
  ASSERT_TRUE(migrations::MigrateFile(path_).ok());
  EXPECT_EQ(Contents(path_), before);
}

TEST_P(SchemaTest, AFullDiskLeavesTheFileAsItWas) {
  if (GetParam() == NewestSchema()) return;  // there is nothing to do
  const std::string before = Contents(path_);
  {
    SQLite::Database db(path_, SQLite::OPEN_READWRITE);
    migrations::SetUpWriting(db);
    db.exec("VACUUM");  // a table that a migration dropped has left free pages
    db.exec("PRAGMA max_page_count = " + db.execAndGet("PRAGMA page_count").getString());
    EXPECT_THROW(static_cast<void>(migrations::Migrate(db, path_)), SQLite::Exception);
  }
  EXPECT_EQ(*migrations::SchemaOfFile(path_), GetParam());
  EXPECT_EQ(Contents(path_), before);
}

TEST_P(SchemaTest, OfTwoAtOnceOneMigrates) {
  const std::string before = Contents(path_);
  std::vector<absl::StatusOr<migrations::Migrated>> done(2, absl::UnknownError(""));
  std::vector<std::thread> threads;
  for (auto& result : done) {
    threads.emplace_back([&] { result = migrations::MigrateFile(path_); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : done) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->to, NewestSchema());
  }
  EXPECT_EQ(Contents(path_), before);
  ExpectSound(path_);
}

TEST_P(SchemaTest, ReadersWaitForSomebodyElseToMigrateIt) {
  const std::string before = Bytes(path_);
  for (const absl::Status& status :
       {db::Reader::Open(path_).status(), db::ImportReader::Open(path_).status(),
        db::CheckDatabase(path_).status(), db::ReadInfo(path_).status()}) {
    if (GetParam() == NewestSchema()) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(status.GetPayload(migrations::kOlderSchemaPayload));
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat("has schema version ", GetParam())),
                      HasSubstr("pelab db migrate migrates it")));
  }
  EXPECT_EQ(Bytes(path_), before);
}

TEST_P(SchemaTest, ANewerOneIsRefusedUnchanged) {
  Text(path_, "PRAGMA user_version = 4711");
  const std::string before = Bytes(path_);
  for (const absl::Status& status : OpenedByEveryone(path_)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr(absl::StrCat("is from a newer pelab: its schema is version 4711, this program "
                               "knows up to ",
                               NewestSchema())));
  }
  EXPECT_EQ(Bytes(path_), before);
  EXPECT_EQ(migrations::MigrateFile(directory_ + "/none.db").status().code(),
            absl::StatusCode::kNotFound);
}

struct Change {
  const char* sql;
  const char* said;
};

// A file from somebody else: its views could run without end, its triggers change what is written.
TEST_P(SchemaTest, OneThatSomebodyChangedIsRefusedUnchanged) {
  const std::string original = directory_ + "/original.db";
  Text(path_, "PRAGMA wal_checkpoint(TRUNCATE)");
  std::filesystem::copy_file(path_, original);
  for (const Change& change : std::vector<Change>{
           {"DROP VIEW v_jobs; CREATE VIEW v_jobs AS WITH RECURSIVE n (job_id) AS "
            "(SELECT 1 UNION ALL SELECT job_id FROM n) SELECT job_id FROM n",
            "its view \"v_jobs\" is not the view of schema "},
           {"DROP VIEW v_logs; CREATE TABLE v_logs (attempt_id, byte_offset, data)",
            "its table \"v_logs\" is not the view of schema "},
           {"ALTER TABLE jobs ADD COLUMN more TEXT",
            "its table \"jobs\" is not the table of schema "},
           {"DROP INDEX attempts_open", "its index \"attempts_open\" is missing"},
           {"CREATE TRIGGER gone AFTER INSERT ON attempts BEGIN DELETE FROM curves; END",
            "it has a trigger \"gone\", and pelab makes none; DROP TRIGGER removes it"},
           {"CREATE TABLE theirs (x); CREATE TRIGGER t INSERT ON theirs BEGIN SELECT 1; END",
            "it has a trigger \"t\""},
           {"CREATE INDEX more ON jobs (seed)",
            "its table \"jobs\" has an index \"more\" that pelab does not make"}}) {
    std::filesystem::copy_file(original, path_, std::filesystem::copy_options::overwrite_existing);
    SQLite::Database(path_, SQLite::OPEN_READWRITE).exec(change.sql);
    const std::string before = Bytes(path_);
    for (const absl::Status& status : OpenedByEveryone(path_)) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << change.sql;
      EXPECT_FALSE(status.GetPayload(migrations::kOlderSchemaPayload)) << change.sql;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(StartsWith(path_ + " is not as pelab made it: "), HasSubstr(change.said)));
    }
    EXPECT_EQ(Bytes(path_), before) << change.sql;
  }
}

TEST_P(SchemaTest, FurtherTablesAndAnotherSpellingAreNoChange) {
  SQLite::Database(path_, SQLite::OPEN_READWRITE)
      .exec(
          "CREATE TABLE notes (job_id, note); CREATE UNIQUE INDEX note_of_job ON notes (job_id); "
          "CREATE VIEW my_jobs AS SELECT * FROM v_jobs JOIN notes USING (job_id); ANALYZE; "
          // SQLite quotes the names that it writes, in the views of the table too.
          "ALTER TABLE logs RENAME TO other; ALTER TABLE other RENAME TO logs");
  ASSERT_THAT(Text(path_, "SELECT sql FROM sqlite_master WHERE name = 'logs'"),
              HasSubstr("\"logs\""));
  const auto done = migrations::MigrateFile(path_);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_TRUE(db::Reader::Open(path_).ok());
  EXPECT_TRUE(Store::Open(path_).ok());
  ExpectSound(path_);
}

TEST_P(SchemaTest, OneFromBeforeTheFirstReleaseIsRefusedUnchanged) {
  for (const int version : {1, 13, migrations::kFirstSchema - 1}) {
    Text(path_, absl::StrCat("PRAGMA user_version = ", version));
    const std::string before = Bytes(path_);
    for (const absl::Status& status : OpenedByEveryone(path_)) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_FALSE(status.GetPayload(migrations::kOlderSchemaPayload));
      EXPECT_THAT(std::string(status.message()),
                  AllOf(StartsWith(absl::StrCat(path_, " has schema version ", version,
                                                ", from before the first release")),
                        HasSubstr("commit 36de102"), HasSubstr("docs/operations.md")));
    }
    EXPECT_EQ(Bytes(path_), before);
  }
}

}  // namespace
}  // namespace pelab::store
