// The folder of backups: names, what is removed and what never is, and backups that are made on a
// clock that the test advances.
#include "server/backups/scheduled_backups.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/db/check/check.h"
#include "server/store/store.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"

namespace pelab::backups {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(BackupNameTest, KnowsWhatBelongsToABackup) {
  for (const std::string rest : {"", ".artifacts", "-wal", "-shm", "-journal", ".lock", ".partial",
                                 ".partial.artifacts", ".partial-wal", ".partial-shm"}) {
    const auto name = ParseBackupName("pelab-20261126T081500Z.db" + rest, "pelab-");
    ASSERT_TRUE(name) << rest;
    EXPECT_EQ(name->rest, rest);
    EXPECT_EQ(name->time,
              absl::FromCivil(absl::CivilSecond(2026, 11, 26, 8, 15, 0), absl::UTCTimeZone()));
  }
}

TEST(BackupNameTest, KnowsNothingElse) {
  for (const std::string name :
       {"pelab.db", "pelab-friday.db", "pelab-20261126T081500Z", "pelab-20261126T081500Z.db.old",
        "pelab-20261126T081500Z.database", "other-20261126T081500Z.db", "pelab-20261326T081500Z.db",
        "pelab-20261126T081500Z.db.artifacts.old", "pelab-20261126T081560Z.db",
        "pelab-20261126T081500.db", "pelab-2026-1-26T08150Z.db", "pelab-"}) {
    EXPECT_FALSE(ParseBackupName(name, "pelab-")) << name;
  }
}

class ScheduledBackupsTest : public testing::Test {
 protected:
  ScheduledBackupsTest() {
    fs::create_directory(folder_);
    EXPECT_TRUE(store::Store::Open(database_).ok());
  }
  absl::StatusOr<std::unique_ptr<ScheduledBackups>> Open(Retention keep = {.newest = 2}) {
    return ScheduledBackups::Open({.directory = folder_, .every = absl::Hours(1), .keep = keep},
                                  database_, clock_);
  }
  void Write(const std::string& name) { std::ofstream(folder_ + "/" + name) << "x"; }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name != ".pelab-backups.lock") names.insert(name);
    }
    return names;
  }

  const TempDir directory_;
  const std::string folder_ = directory_.path() + "/backups";
  const std::string database_ = directory_.path() + "/pelab.db";
  FakeClock clock_;  // begins at 2023-11-14 22:13:20 UTC
};

TEST_F(ScheduledBackupsTest, MakesSoundBackupsAndKeepsTheNewest) {
  auto backups = Open();
  ASSERT_TRUE(backups.ok()) << backups.status();
  EXPECT_EQ((*backups)->last_success(), std::nullopt);
  for (int i = 0; i < 3; ++i) {
    const auto report = (*backups)->Make();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ((*backups)->last_success(), clock_.Wall());
    clock_.Advance(absl::Hours(1));
  }
  EXPECT_THAT(Names(),
              UnorderedElementsAre("pelab-20231114T231320Z.db", "pelab-20231115T001320Z.db"));
  const auto checks = db::CheckDatabase(folder_ + "/pelab-20231115T001320Z.db");
  ASSERT_TRUE(checks.ok()) << checks.status();
  for (const db::Check& check : *checks) EXPECT_THAT(check.problems, IsEmpty()) << check.name;
}

TEST_F(ScheduledBackupsTest, TwoOfOneSecondHaveTwoNames) {
  auto backups = Open();
  ASSERT_TRUE(backups.ok());
  ASSERT_TRUE((*backups)->Make().ok());
  ASSERT_TRUE((*backups)->Make().ok());
  EXPECT_THAT(Names(),
              UnorderedElementsAre("pelab-20231114T221320Z.db", "pelab-20231114T221321Z.db"));
}

TEST_F(ScheduledBackupsTest, AStartRemovesHalfBackupsAndNothingElse) {
  Write("pelab-20231101T000000Z.db");
  Write("pelab-20231101T000000Z.db-shm");
  Write("pelab-20231102T000000Z.db.partial");
  Write("pelab-20231102T000000Z.db.partial-wal");
  fs::create_directories(folder_ + "/pelab-20231102T000000Z.db.partial.artifacts/ab");
  fs::create_directories(folder_ + "/pelab-20231103T000000Z.db.artifacts/ab");  // no database
  Write("pelab-friday.db");
  Write("pelab-friday.db.partial");
  Write("other-20231102T000000Z.db.partial");
  auto backups = Open();
  ASSERT_TRUE(backups.ok()) << backups.status();
  EXPECT_THAT(Names(),
              UnorderedElementsAre("pelab-20231101T000000Z.db", "pelab-20231101T000000Z.db-shm",
                                   "pelab-friday.db", "pelab-friday.db.partial",
                                   "other-20231102T000000Z.db.partial"));
  EXPECT_EQ((*backups)->last_success(),
            absl::FromCivil(absl::CivilDay(2023, 11, 1), absl::UTCTimeZone()));
}

TEST_F(ScheduledBackupsTest, RemovesOnlyItsOwnFiles) {
  Write("pelab-20231101T000000Z.db");
  fs::create_directories(folder_ + "/pelab-20231101T000000Z.db.artifacts/ab");
  Write("pelab-20231101T000000Z.db.txt");
  Write("notes.txt");
  auto backups = Open({.newest = 1});
  ASSERT_TRUE(backups.ok()) << backups.status();
  ASSERT_TRUE((*backups)->Make().ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("pelab-20231114T221320Z.db",
                                            "pelab-20231101T000000Z.db.txt", "notes.txt"));
}

TEST_F(ScheduledBackupsTest, AFailureLeavesNothingAndRemovesNothing) {
  Write("pelab-20231101T000000Z.db");
  auto backups = Open({.newest = 1});
  ASSERT_TRUE(backups.ok());
  fs::resize_file(database_, 8192);  // as if half of it were lost
  const auto report = (*backups)->Make();
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(Names(), ElementsAre("pelab-20231101T000000Z.db"));
}

TEST_F(ScheduledBackupsTest, RefusesAFolderThatItCannotUse) {
  const auto refused = [&](const std::string& folder) {
    const auto backups =
        ScheduledBackups::Open({.directory = folder, .every = absl::Hours(1)}, database_, clock_);
    EXPECT_TRUE(absl::IsFailedPrecondition(backups.status())) << backups.status();
    return std::string(backups.status().message());
  };
  EXPECT_THAT(refused(folder_ + "/none"), HasSubstr("none: there is no such directory; "
                                                    "--backup-dir must be an existing directory"));
  EXPECT_THAT(refused(database_), HasSubstr("it is not a directory"));
  const auto first = Open();
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(refused(folder_), HasSubstr("another coordinator keeps backups named pelab-…"));
}

}  // namespace
}  // namespace pelab::backups
