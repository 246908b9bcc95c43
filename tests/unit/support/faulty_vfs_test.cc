// Tests the failing file system: the state after a crash, a power loss and a failed sync, and
// SQLite on it.
#include "tests/support/faulty_vfs.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pelab {
namespace {

using Fault = FaultyVfs::Fault;

constexpr int kIndexPart = 32'768;  // bytes that SQLite maps of a WAL index at once

// A file that is opened without SQLite.
class RawFile {
 public:
  explicit RawFile(const FaultyVfs& vfs, const char* path = "f") {
    sqlite3_vfs* const found = sqlite3_vfs_find(vfs.name().c_str());
    memory_.resize(found->szOsFile);
    opened =
        found->xOpen(found, path, file(),
                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB, nullptr);
  }
  ~RawFile() {
    if (file()->pMethods != nullptr) file()->pMethods->xClose(file());
  }
  int Write(const std::string& data, int offset = 0) {
    return file()->pMethods->xWrite(file(), data.data(), static_cast<int>(data.size()), offset);
  }
  int Sync() { return file()->pMethods->xSync(file(), SQLITE_SYNC_FULL); }
  int Truncate(int size) { return file()->pMethods->xTruncate(file(), size); }
  // The first part of the WAL index.
  char* Index() {
    void volatile* region = nullptr;
    EXPECT_EQ(file()->pMethods->xShmMap(file(), 0, kIndexPart, /*extend=*/1, &region), SQLITE_OK);
    return static_cast<char*>(const_cast<void*>(region));
  }

  int opened = SQLITE_ERROR;

 private:
  sqlite3_file* file() { return reinterpret_cast<sqlite3_file*>(memory_.data()); }
  std::vector<char> memory_;
};

TEST(FaultyVfsTest, ACrashKeepsWhatWasWrittenAPowerLossWhatWasSynced) {
  FaultyVfs vfs;
  {
    RawFile file(vfs);
    ASSERT_EQ(file.Write("durable"), SQLITE_OK);
    ASSERT_EQ(file.Sync(), SQLITE_OK);
    ASSERT_EQ(file.Write("WRITTEN"), SQLITE_OK);
    vfs.Crash();
    EXPECT_EQ(file.Write("late"), SQLITE_IOERR_WRITE);
    EXPECT_NE(RawFile(vfs).opened, SQLITE_OK) << "down until it is restarted";
    vfs.Restart();
    EXPECT_EQ(file.Write("later"), SQLITE_IOERR_WRITE) << "a handle of the process that died";
  }
  EXPECT_EQ(vfs.Read("f"), "WRITTEN");
  vfs.LosePower(0);
  EXPECT_EQ(vfs.Read("f"), "durable");
}

// SQLite uses it on its way out.
TEST(FaultyVfsTest, AConnectionOfADeadProcessKeepsItsWalIndex) {
  FaultyVfs vfs;
  RawFile dead(vfs);
  char* const index = dead.Index();
  std::fill_n(index, kIndexPart, 'x');
  vfs.Crash();
  vfs.Restart();
  RawFile next(vfs);
  const char* const new_index = next.Index();
  EXPECT_EQ(std::count(index, index + kIndexPart, 'x'), kIndexPart);
  EXPECT_EQ(std::count(new_index, new_index + kIndexPart, '\0'), kIndexPart);
}

TEST(FaultyVfsTest, AfterAFailedSyncPagesAreCleanAndNotDurable) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FaultyVfs vfs(seed);
    RawFile file(vfs);
    file.Write("old");
    file.Sync();
    file.Write("new");
    vfs.Set({.at = vfs.operations(FaultyVfs::kSync) + 1, .kinds = FaultyVfs::kSync});
    EXPECT_EQ(file.Sync(), SQLITE_IOERR_FSYNC);
    EXPECT_EQ(file.Sync(), SQLITE_OK) << "the next one knows nothing of it";
    EXPECT_EQ(vfs.Read("f"), "new") << "and so it is read";
    file.Write("tail", 3);
    EXPECT_EQ(file.Sync(), SQLITE_OK);
    vfs.LosePower(1);
    EXPECT_TRUE(vfs.Read("f") == "oldtail" || vfs.Read("f") == "newtail");
    if (vfs.Read("f") == "oldtail") ++lost;
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 20);
  FaultyVfs vfs;
  RawFile file(vfs);
  file.Write("old");
  vfs.Set({.at = vfs.operations() + 1});
  EXPECT_NE(file.Sync(), SQLITE_OK);
  file.Write("old");  // written again, so it is dirty again
  EXPECT_EQ(file.Sync(), SQLITE_OK);
  vfs.LosePower(0);
  EXPECT_EQ(vfs.Read("f"), "old");
}

TEST(FaultyVfsTest, UnsyncedSectorsSurviveAPowerLossInAnyCombination) {
  int torn = 0;
  int later_without_earlier = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    FaultyVfs vfs(seed);
    RawFile file(vfs);
    file.Write(std::string(1024, '-'));
    file.Sync();
    file.Write(std::string(1024, 'a'));
    file.Write("b", 0);
    vfs.LosePower(0.5);
    const std::string left = *vfs.Read("f");
    ASSERT_EQ(left.size(), 1024u);
    torn += (left[511] == 'a') != (left[512] == 'a');
    later_without_earlier += left[0] == 'b' && left[1] == '-';
  }
  EXPECT_GT(torn, 50);
  EXPECT_GT(later_without_earlier, 20);
}

TEST(FaultyVfsTest, DirectoriesAreDurableOnceSynced) {
  FaultyVfs vfs;
  sqlite3_vfs* const calls = sqlite3_vfs_find(vfs.name().c_str());
  {
    RawFile file(vfs);
    file.Write("x");
    file.Sync();
    RawFile never(vfs, "never");
    never.Write("x");
  }
  ASSERT_EQ(calls->xDelete(calls, "f", 0), SQLITE_OK);
  EXPECT_FALSE(vfs.Exists("f"));
  vfs.LosePower(1);
  vfs.Restart();
  EXPECT_EQ(vfs.Read("f"), "x") << "its directory was not synced";
  EXPECT_FALSE(vfs.Exists("never"));
  ASSERT_EQ(calls->xDelete(calls, "f", 1), SQLITE_OK);
  vfs.LosePower(1);
  vfs.Restart();
  EXPECT_FALSE(vfs.Exists("f"));
  {
    RawFile file(vfs);
    file.Sync();
  }
  ASSERT_EQ(calls->xDelete(calls, "f", 0), SQLITE_OK);
  RawFile(vfs, "other").Sync();
  vfs.LosePower(1);
  EXPECT_FALSE(vfs.Exists("f")) << "another file's first sync made its deletion durable";
}

TEST(FaultyVfsTest, FailsWhatItIsTold) {
  FaultyVfs vfs;
  RawFile file(vfs);
  vfs.Set({.at = 2, .times = 2, .how = Fault::kFull});
  EXPECT_EQ(file.Write("1"), SQLITE_OK);
  EXPECT_EQ(file.Write("2"), SQLITE_FULL);
  EXPECT_EQ(file.Truncate(0), SQLITE_IOERR_TRUNCATE);
  EXPECT_EQ(file.Write("34"), SQLITE_OK);
  vfs.Set({.at = vfs.operations(FaultyVfs::kSync) + 1, .kinds = FaultyVfs::kSync});
  EXPECT_EQ(file.Write("56"), SQLITE_OK) << "not a sync, though its turn";
  vfs.Set({.at = vfs.operations() + 1, .how = Fault::kShort});
  EXPECT_EQ(file.Write("789a"), SQLITE_FULL);
  EXPECT_EQ(vfs.Read("f"), "78");
  EXPECT_EQ(vfs.failures(), 3u);
}

// At whatever operation the process dies, every transaction that SQLite has committed is there
// afterwards, complete.
void CommitsUntil(Fault::How how, std::uint64_t at, std::uint64_t seed, bool* died) {
  FaultyVfs vfs(seed);
  int committed = 0;
  bool checkpointed = false;
  try {
    SQLite::Database db(std::string("db"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 0,
                        vfs.name());
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (n, filler)");
    vfs.Set({.at = vfs.operations() + at, .how = how});
    for (int i = 0; i < 12; ++i) {
      db.exec("INSERT INTO t VALUES (" + std::to_string(i) + ", randomblob(6000))");
      ++committed;
      if (i % 5 == 4) {
        checkpointed = true;
        db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      }
    }
  } catch (const SQLite::Exception&) {
  }
  *died = vfs.down();
  if (!vfs.down()) vfs.LosePower(0.5);
  vfs.Restart();
  SQLite::Database db(std::string("db"), SQLite::OPEN_READWRITE, 0, vfs.name());
  EXPECT_EQ(db.execAndGet("PRAGMA integrity_check").getString(), "ok");
  const int found = db.execAndGet("SELECT count(*) FROM t").getInt();
  EXPECT_GE(found, committed) << "at " << at << " seed " << seed;
  EXPECT_LE(found, committed + 1) << "at " << at << " checkpointed " << checkpointed;
}

TEST(FaultyVfsTest, SqliteKeepsWhatItCommitted) {
  for (const Fault::How how : {Fault::kCrash, Fault::kPowerLoss}) {
    bool died = true;
    for (std::uint64_t at = 1; died; ++at) {
      ASSERT_LT(at, 500u);
      for (std::uint64_t seed = 0; seed < 3; ++seed) CommitsUntil(how, at, seed, &died);
    }
  }
}

// Two connections of one process: readers see complete commits, and locks are respected.
TEST(FaultyVfsTest, ConnectionsOfOneProcessShareTheWal) {
  FaultyVfs vfs;
  SQLite::Database one(std::string("db"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 0,
                       vfs.name());
  EXPECT_EQ(one.execAndGet("PRAGMA journal_mode = WAL").getString(), "wal");
  one.exec("CREATE TABLE t (n)");
  SQLite::Database two(std::string("db"), SQLite::OPEN_READWRITE, 0, vfs.name());
  one.exec("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)");
  EXPECT_EQ(two.execAndGet("SELECT count(*) FROM t").getInt(), 0);
  EXPECT_EQ(two.tryExec("BEGIN IMMEDIATE"), SQLITE_BUSY);
  one.exec("COMMIT");
  EXPECT_EQ(two.execAndGet("SELECT count(*) FROM t").getInt(), 1);
  EXPECT_EQ(two.tryExec("INSERT INTO t VALUES (2)"), SQLITE_OK);
  EXPECT_EQ(one.execAndGet("SELECT count(*) FROM t").getInt(), 2);
}

TEST(FaultyVfsTest, AnImageIsACopy) {
  FaultyVfs vfs;
  {
    SQLite::Database db(std::string("db"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 0,
                        vfs.name());
    db.exec("CREATE TABLE t (n)");
  }
  const FaultyVfs::Image image = vfs.Save();
  FaultyVfs other;
  other.Load(image);
  {
    SQLite::Database db(std::string("db"), SQLite::OPEN_READWRITE, 0, other.name());
    db.exec("INSERT INTO t VALUES (1)");
  }
  SQLite::Database db(std::string("db"), SQLite::OPEN_READWRITE, 0, vfs.name());
  EXPECT_EQ(db.execAndGet("SELECT count(*) FROM t").getInt(), 0);
}

}  // namespace
}  // namespace pelab
