// Commands read, migrate or refuse a file of an older schema. This program has one invented
// migration after the last (tests/support/next_schema).
#include <sstream>

#include "client/import/importer.h"
#include "client/source/connect.h"
#include "core/render/json.h"
#include "core/rpc/lock_file.h"
#include "migrations/migrate.h"
#include "tests/contract/store/old_databases.h"
#include "tests/unit/client/cli_fixture.h"

namespace pelab::client {
namespace {

using migrations::kFirstSchema;
using migrations::NewestSchema;
using testing::HasSubstr;

class SchemaCommandsTest : public testing::Test {
 protected:
  SchemaCommandsTest() {
    unsetenv("PELAB_SERVER");
    std::string pattern = testing::TempDir() + "schemaXXXXXX";
    directory_ = mkdtemp(pattern.data());
    path_ = directory_ + "/old.db";
    store::WriteOldDatabase(path_, kFirstSchema);
  }
  ~SchemaCommandsTest() override { std::filesystem::remove_all(directory_); }

  CliResult Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--db", path_});
    return RunCli(std::move(arguments));
  }
  render::Json RunJson(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--output", "json"});
    return render::Json::parse(Run(std::move(arguments)).out, nullptr, false);
  }
  void SetVersion(int version) const {
    SQLite::Database(path_, SQLite::OPEN_READWRITE)
        .exec("PRAGMA user_version = " + std::to_string(version));
  }

  std::string directory_;
  std::string path_;
};

TEST_F(SchemaCommandsTest, MigrateSaysFromWhereToWhereAndKeepsACopy) {
  EXPECT_THAT(Run({"db", "check"}).err, HasSubstr("pelab db migrate"));
  const CliResult result = Run({"db", "migrate"});
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string copy = path_ + ".schema-" + std::to_string(kFirstSchema);
  EXPECT_THAT(result.out,
              HasSubstr("from schema " + std::to_string(kFirstSchema) + " to " +
                        std::to_string(NewestSchema()) + "; the old one is kept as " + copy));
  EXPECT_EQ(Run({"db", "info"}).code, 0);
  EXPECT_EQ(*migrations::SchemaOfFile(copy), kFirstSchema);
  EXPECT_THAT(RunCli({"db", "info", "--db", copy}).err,
              HasSubstr("schema version " + std::to_string(kFirstSchema)));
  EXPECT_THAT(Run({"db", "migrate"}).out, HasSubstr("there is nothing to do"));
  const render::Json nothing = RunJson({"db", "migrate"});
  EXPECT_EQ(nothing["from"], nothing["to"]);
  EXPECT_EQ(nothing["copy"], render::Json());
}

TEST_F(SchemaCommandsTest, ACopyTakesNoNameThatIsTaken) {
  const std::string copy = path_ + ".schema-" + std::to_string(kFirstSchema);
  std::ofstream(copy) << "mine";
  EXPECT_EQ(RunJson({"db", "migrate"})["copy"], copy + ".2");
  EXPECT_EQ(*migrations::SchemaOfFile(copy + ".2"), kFirstSchema);
  EXPECT_EQ(std::filesystem::file_size(copy), 4u);
}

TEST_F(SchemaCommandsTest, NoCopyIsKeptIfNoneIsWanted) {
  EXPECT_EQ(RunJson({"db", "migrate", "--no-copy"})["copy"], render::Json());
  EXPECT_EQ(*migrations::SchemaOfFile(path_), NewestSchema());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".schema-" + std::to_string(kFirstSchema)));
}

TEST_F(SchemaCommandsTest, NobodyMigratesAFileThatIsServed) {
  auto lock = rpc::LockFile::Acquire(path_);
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_TRUE(lock->WriteAddress("unix:/tmp/pelab-nobody.sock").ok());
  const CliResult result = Run({"db", "migrate"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("is already served by a coordinator at unix:"));
  EXPECT_EQ(*migrations::SchemaOfFile(path_), kFirstSchema);
}

TEST_F(SchemaCommandsTest, AnImportSaysHowToMigrateACopy) {
  const auto importer = Importer::Open(path_, true);
  EXPECT_EQ(importer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(importer.status().message()), HasSubstr("migrate a copy"));
}

TEST_F(SchemaCommandsTest, RunTakesAnOlderFileButNoneFromBeforeTheFirstRelease) {
  EXPECT_TRUE(CheckDatabaseFile(path_).ok()) << "the coordinator of run migrates it";
  SetVersion(kFirstSchema - 1);
  const absl::Status refused = CheckDatabaseFile(path_);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("from before the first release"));
  EXPECT_EQ(Importer::Open(path_, true).status(), refused);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"results"},
                                             {"report", "x"},
                                             {"db", "check"},
                                             {"db", "info"},
                                             {"db", "migrate"},
                                             {"db", "backup", directory_ + "/copy.db"}}) {
    const CliResult result = Run(command);
    EXPECT_EQ(result.code, 2) << command.back();
    EXPECT_THAT(result.err, HasSubstr(std::string(refused.message()))) << command.back();
  }
}

}  // namespace
}  // namespace pelab::client
