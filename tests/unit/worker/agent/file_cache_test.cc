#include "worker/agent/file_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "core/base/file.h"
#include "core/base/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::agent {
namespace {

namespace fs = std::filesystem;

class FileCacheTest : public ::testing::Test {
 protected:
  static v1::NeededFile Needed(const std::string& data) {
    v1::NeededFile file;
    file.set_sha256(Sha256Hex(data));
    file.set_bytes(data.size());
    return file;
  }
  std::string PathOf(const std::string& data) { return dir_ / "files/" + Sha256Hex(data); }
  std::string Fetched(const std::string& data) {
    EXPECT_THAT(WriteFileAtomically(dir_ / "fetched", data), IsOk());
    return dir_ / "fetched";
  }
  void Age(const std::string& path, int days) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(24 * days));
  }

  TempDir dir_;
  FileCache cache_{dir_ / "files"};
};

TEST_F(FileCacheTest, HasWhatWasPut) {
  EXPECT_FALSE(cache_.Has(Needed("a")));
  ASSERT_THAT(cache_.Put(Fetched("a"), Sha256Hex("a")), IsOk());
  EXPECT_TRUE(cache_.Has(Needed("a")));
  EXPECT_FALSE(fs::exists(dir_ / "fetched"));
  ASSERT_THAT(cache_.Put(Fetched("a"), Sha256Hex("a")), IsOk()) << "as another attempt does it";
  EXPECT_TRUE(FileCache(dir_ / "files").Has(Needed("a"))) << "a later daemon";
  fs::remove(PathOf("a"));
  EXPECT_FALSE(cache_.Has(Needed("a")));
}

TEST_F(FileCacheTest, AFileOfAnEarlierDaemonIsChecked) {
  fs::create_directories(dir_ / "files");
  ASSERT_THAT(WriteFileAtomically(PathOf("whole"), "whole"), IsOk());
  ASSERT_THAT(WriteFileAtomically(PathOf("damaged"), "damage!"), IsOk());
  fs::create_symlink(PathOf("whole"), PathOf("a link"));
  EXPECT_TRUE(cache_.Has(Needed("whole")));
  EXPECT_FALSE(cache_.Has(Needed("damaged")));
  EXPECT_FALSE(cache_.Has(Needed("a link")));
  ASSERT_THAT(cache_.Put(Fetched("damaged"), Sha256Hex("damaged")), IsOk());
  EXPECT_TRUE(cache_.Has(Needed("damaged")));
  v1::NeededFile elsewhere;
  elsewhere.set_sha256("../files/" + Sha256Hex("whole"));
  EXPECT_FALSE(cache_.Has(elsewhere));
}

TEST_F(FileCacheTest, UnusedFilesAreRemovedAfterThirtyDays) {
  for (const std::string data : {"old", "used", "young"}) {
    ASSERT_THAT(cache_.Put(Fetched(data), Sha256Hex(data)), IsOk());
  }
  Age(PathOf("old"), 31);
  Age(PathOf("used"), 31);
  Age(PathOf("young"), 29);
  ASSERT_TRUE(cache_.Has(Needed("used")));
  cache_.RemoveOld();
  EXPECT_FALSE(fs::exists(PathOf("old")));
  EXPECT_TRUE(fs::exists(PathOf("used")));
  EXPECT_TRUE(fs::exists(PathOf("young")));
  FileCache(dir_ / "nowhere").RemoveOld();
}

}  // namespace
}  // namespace pelab::agent
