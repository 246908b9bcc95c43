// Tests the stored files, their share of the quota, and what protects a file from being deleted.
#include "server/store/artifact_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/utf8.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ArtifactFilesTest : public testing::Test {
 protected:
  ArtifactFilesTest() { Open(); }
  void Open() {
    auto files = ArtifactFiles::Open(dir_ / "pelab.db", 100);
    ASSERT_THAT(files, IsOk());
    files_ = *std::move(files);
  }
  absl::Status Put(const std::string& data) {
    auto upload = files_->Begin(Sha256Hex(data), data.size());
    if (!upload.ok()) return upload.status();
    if (absl::Status status = (*upload)->Write(data); !status.ok()) return status;
    return (*upload)->Commit();
  }
  static int FolderOf(const std::string& data) {
    return std::stoi(Sha256Hex(data).substr(0, 2), nullptr, 16);
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  }
  bool Has(const std::string& data) { return files_->Has(Sha256Hex(data)); }

  TempDir dir_;
  std::unique_ptr<ArtifactFiles> files_;
};

TEST_F(ArtifactFilesTest, TheQuotaCountsWhatIsThere) {
  const std::string data(50, 'x');
  ASSERT_THAT(Put(data), IsOk());
  ASSERT_THAT(Put(data), IsOk()) << "the same bytes take no more room";
  EXPECT_EQ(files_->used(), 50u);
  EXPECT_EQ(files_->StoredBytes(Sha256Hex(data)), 50u);
  EXPECT_EQ(files_->StoredBytes(Sha256Hex("y")), std::nullopt);
  EXPECT_EQ(files_->Lacking(50), 0u);
  EXPECT_EQ(files_->Lacking(60), 10u);
  EXPECT_EQ(files_->Lacking(101), 0u) << "no room could be made";
  EXPECT_EQ(Put(std::string(51, 'y')).code(), absl::StatusCode::kResourceExhausted);
  Open();
  EXPECT_EQ(files_->used(), 50u);
  ASSERT_TRUE(files_->Consider(Sha256Hex(data)));
  EXPECT_TRUE(files_->RemoveConsidered(Sha256Hex(data)));
  EXPECT_EQ(files_->used(), 0u);
  EXPECT_FALSE(Has(data));
}

// The umask of the process keeps all other files private, and does not count in the store.
TEST_F(ArtifactFilesTest, ASharedStoreHasTheModesOfItsUmask) {
  const mode_t before = umask(077);
  const std::string store = dir_ / "made/store";
  auto files = ArtifactFiles::Open(dir_ / "other.db", 100, SharedStore{store, 002});
  ASSERT_THAT(files, IsOk());
  files_ = *std::move(files);
  EXPECT_THAT(Put("shared"), IsOk());
  umask(before);
  const std::string hash = Sha256Hex("shared");
  const std::string folder = absl::StrCat(store, "/", hash.substr(0, 2));
  EXPECT_EQ(ModeOf(store), 0775u);
  EXPECT_EQ(ModeOf(absl::StrCat(store, "/database")), 0644u);
  EXPECT_EQ(ModeOf(folder), 0775u);
  EXPECT_EQ(ModeOf(absl::StrCat(folder, "/", hash)), 0644u);
  EXPECT_EQ(ModeOf(dir_ / "made"), 0700u);
}

TEST_F(ArtifactFilesTest, AnUploadHoldsTheRoomOfWhatItHasWrittenUntilItEnds) {
  {
    const auto upload = files_->Begin(Sha256Hex("x"), 90);
    ASSERT_THAT(upload, IsOk());
    EXPECT_EQ(files_->used(), 0u) << "nothing has come yet";
    EXPECT_THAT((*upload)->Write(std::string(90, 'x')), IsOk());
    EXPECT_EQ(files_->used(), 90u);
    EXPECT_EQ((*upload)->Write("x").code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Put(std::string(11, 'y')).code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(files_->used(), 0u);
  EXPECT_THAT(Put(std::string(11, 'y')), IsOk());
}

TEST_F(ArtifactFilesTest, AnUploadThatFindsNoRoomMayGoOnOnceThereIsSome) {
  const std::string old(60, 'o');
  const std::string data(70, 'd');
  ASSERT_THAT(Put(old), IsOk());
  using Room = ArtifactFiles::Room;
  EXPECT_EQ(files_->Begin(Sha256Hex(data), 70, Room::kFree).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(files_->Begin(Sha256Hex(data), 101, Room::kMayBeMade).status().code(),
            absl::StatusCode::kResourceExhausted);
  const auto upload = files_->Begin(Sha256Hex(data), 70, Room::kMayBeMade);
  ASSERT_THAT(upload, IsOk());
  EXPECT_THAT((*upload)->Write(data.substr(0, 40)), IsOk());
  EXPECT_EQ((*upload)->Write(data.substr(40)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(files_->used(), 100u);
  ASSERT_TRUE(files_->Consider(Sha256Hex(old)));
  ASSERT_TRUE(files_->RemoveConsidered(Sha256Hex(old)));
  EXPECT_THAT((*upload)->Write(data.substr(40)), IsOk());
  EXPECT_THAT((*upload)->Commit(), IsOk());
  EXPECT_EQ(files_->used(), 70u);
  EXPECT_TRUE(Has(data));
}

TEST_F(ArtifactFilesTest, AHoldSavesAFileBeforeAndAfterItIsConsidered) {
  ASSERT_THAT(Put("kept"), IsOk());
  const std::string sha256 = Sha256Hex("kept");
  {
    const ArtifactFiles::FileHold hold(*files_, sha256);
    EXPECT_FALSE(files_->Consider(sha256));
  }
  ASSERT_TRUE(files_->Consider(sha256));
  { const ArtifactFiles::FileHold hold(*files_, sha256); }  // the file was uploaded again meanwhile
  EXPECT_FALSE(files_->RemoveConsidered(sha256));
  ASSERT_TRUE(files_->Consider(sha256));
  {
    const ArtifactFiles::Hold backup = files_->HoldAll();
    EXPECT_FALSE(files_->RemoveConsidered(sha256));
  }
  EXPECT_TRUE(Has("kept"));
  EXPECT_FALSE(files_->RemoveConsidered(sha256)) << "it was not considered again";
  ASSERT_TRUE(files_->Consider(sha256));
  EXPECT_TRUE(files_->RemoveConsidered(sha256));
}

TEST_F(ArtifactFilesTest, OnlyWhatHasNotChangedForAWhileIsOld) {
  ASSERT_THAT(Put("x"), IsOk());
  const auto upload = files_->Begin(Sha256Hex("x"), 1);  // another upload in progress
  ASSERT_THAT(upload, IsOk());
  ASSERT_THAT((*upload)->Write("x"), IsOk());
  const absl::Time now = absl::Now();
  EXPECT_THAT(files_->Old(FolderOf("x"), now - absl::Hours(1)), IsEmpty());
  EXPECT_THAT(files_->Old(FolderOf("x"), now + absl::Hours(1)), ElementsAre(Sha256Hex("x")));
  // A worker's half-written file is deleted after an hour and does not count towards the quota.
  const std::filesystem::path half =
      std::filesystem::path(*files_->PathOf(Sha256Hex("x"))).parent_path() / ".put-1";
  std::ofstream(half) << "half";
  files_->Old(FolderOf("x"), now);
  EXPECT_TRUE(std::filesystem::exists(half));
  std::filesystem::last_write_time(
      half, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  files_->Old(FolderOf("x"), now);
  EXPECT_FALSE(std::filesystem::exists(half));
  EXPECT_EQ(files_->used(), 2u);  // the file and the upload
}

TEST_F(ArtifactFilesTest, WhatABrokenUploadLeavesCountsAndStaysAnHour) {
  const std::string data = "twelve bytes", hash = Sha256Hex(data);
  {
    const auto upload = files_->Begin(hash, 12);
    ASSERT_THAT(upload, IsOk());
    ASSERT_THAT((*upload)->Write("twelve "), IsOk());
    EXPECT_FALSE((*upload)->complete());
    (*upload)->Keep();
    EXPECT_EQ(files_->used(), 7u);
  }
  EXPECT_EQ(files_->used(), 7u);
  EXPECT_EQ(files_->KeptBytes(hash), 7u);
  EXPECT_FALSE(files_->Has(hash));
  EXPECT_THAT(files_->Old(FolderOf(data), absl::Now() + absl::Hours(1)), IsEmpty());
  EXPECT_EQ(files_->used(), 7u) << "counted again";
  EXPECT_EQ(files_->Begin(hash, 12, ArtifactFiles::Room::kFree, 8).status().code(),
            absl::StatusCode::kFailedPrecondition);
  {
    const auto upload = files_->Begin(hash, 12, ArtifactFiles::Room::kFree, 6);
    ASSERT_THAT(upload, IsOk());
    EXPECT_EQ(files_->used(), 6u) << "what was beyond the offset is gone";
    EXPECT_EQ(files_->KeptBytes(hash), 0u) << "no other upload gets these bytes";
    ASSERT_THAT((*upload)->Write(" bytes"), IsOk());
    ASSERT_THAT((*upload)->Commit(), IsOk());
  }
  EXPECT_EQ(files_->used(), 12u);
  EXPECT_EQ(files_->StoredBytes(hash), 12u);

  const std::string other = "another one", other_hash = Sha256Hex(other);
  {
    const auto upload = files_->Begin(other_hash, 11);
    ASSERT_THAT((*upload)->Write("another"), IsOk());
    (*upload)->Keep();
  }
  const std::filesystem::path kept =
      std::filesystem::path(*files_->PathOf(other_hash)).parent_path() / (".kept-" + other_hash);
  std::filesystem::last_write_time(
      kept, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  files_->Old(FolderOf(other), absl::Now());
  EXPECT_EQ(files_->KeptBytes(other_hash), 0u);
  EXPECT_EQ(files_->used(), 12u);
}

TEST_F(ArtifactFilesTest, WhatWorkersPutThereThemselvesIsCountedWhenItIsAnnounced) {
  const std::string data(80, 'w');
  const std::filesystem::path path = *files_->PathOf(Sha256Hex(data));
  EXPECT_EQ(files_->Announce(Sha256Hex(data), 80).code(), absl::StatusCode::kNotFound);
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << data;
  EXPECT_EQ(files_->Announce(Sha256Hex(data), 79).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(files_->Announce(Sha256Hex(data), 80), IsOk());
  EXPECT_THAT(files_->Announce(Sha256Hex(data), 80), IsOk());
  EXPECT_EQ(files_->used(), 80u);
  const std::string more(21, 'm');
  const std::filesystem::path other = *files_->PathOf(Sha256Hex(more));
  std::filesystem::create_directories(other.parent_path());
  std::ofstream(other) << more;
  EXPECT_EQ(files_->Announce(Sha256Hex(more), 21).code(), absl::StatusCode::kResourceExhausted);
}

// Rows of a database that somebody made can hold any text.
TEST_F(ArtifactFilesTest, OnlyAHashNamesAFile) {
  ASSERT_THAT(Put("x"), IsOk());  // makes the folder, so that ".." leads out of it
  const std::string victim = dir_ / "victim";
  std::ofstream(victim) << "victim";
  for (const std::string& text :
       {std::string("./../victim"), std::string("../../victim"), victim, std::string("zz"),
        std::string(), std::string(64, 'F'), Sha256Hex("x") + "/../../../victim"}) {
    EXPECT_EQ(files_->PathOf(text), std::nullopt) << text;
    EXPECT_FALSE(files_->Has(text)) << text;
    EXPECT_FALSE(files_->Consider(text)) << text;
    EXPECT_FALSE(files_->RemoveConsidered(text)) << text;
    EXPECT_EQ(files_->Begin(text, 1).status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(files_->Announce(text, 6).code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_TRUE(std::filesystem::exists(victim));
  EXPECT_TRUE(Has("x"));
  EXPECT_EQ(files_->used(), 1u);
}

TEST(CheckSha256, QuotesWholeCharacters) {
  const absl::Status status = CheckSha256(std::string(79, 'a') + "\xe2\x82\xac");
  EXPECT_TRUE(IsUtf8(std::string(status.message()))) << status;
  EXPECT_THAT(status.ToString(), testing::HasSubstr("not \"" + std::string(77, 'a')));
}

}  // namespace
}  // namespace pelab::store
