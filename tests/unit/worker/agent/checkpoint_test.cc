// Checkpoints without a daemon: reading their metadata, fetching one, and a shared artifact store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/hashing.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "worker/agent/checkpoint_file.h"
#include "worker/agent/checkpoint_transfer.h"
#include "worker/agent/store_transfer.h"

namespace pelab::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSpec[] = R"({"seed":1})";

std::string Checkpoint(int epoch, const std::string& spec = kSpec) {
  std::string quoted;
  for (const char c : spec) absl::StrAppend(&quoted, c == '"' ? "\\" : "", std::string(1, c));
  const std::string header =
      absl::StrCat(R"({"__metadata__":{"epoch":")", epoch, R"(","spec":")", quoted, "\"}}");
  return absl::StrCat(std::string(1, static_cast<char>(header.size())), std::string(7, '\0'),
                      header, "tensors of epoch ", epoch);
}

// A coordinator that has some files and gives the answers that a test sets.
class FakeCoordinator final : public FleetClient {
 public:
  std::unique_ptr<FleetStream> OpenSession() override { return nullptr; }
  absl::Status Put(const ArtifactFile& file, const std::function<bool()>&) override {
    calls.push_back("put");
    files[file.sha256] = *ReadFile(file.path, 1 << 20);
    return absl::OkStatus();
  }
  absl::Status Announce(const ArtifactFile&) override {
    calls.push_back("announce");
    return announced;
  }
  absl::Status Get(const ArtifactFile& file, const std::function<bool()>&) override {
    calls.push_back("get");
    if (!failures.empty()) {
      const absl::Status failure = failures.back();
      failures.pop_back();
      return failure;
    }
    const auto found = files.find(file.sha256);
    if (found == files.end()) return absl::NotFoundError("no such file");
    return WriteFileAtomically(file.path, found->second);
  }

  std::map<std::string, std::string> files;
  std::vector<absl::Status> failures;  // for the next calls of Get; the last entry comes first
  absl::Status announced;
  std::vector<std::string> calls;
};

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    std::filesystem::create_directories(dir_ / "attempt");
    place_.artifacts = &coordinator_;
    place_.assignment = &assignment_;
    place_.job_dir = dir_ / "job";
    place_.attempt_dir = dir_ / "attempt";
    place_.stopped = [] { return false; };
    place_.pause = [this](absl::Duration) { ++pauses_; };
    place_.note = [this](const std::string& text) { notes_.push_back(text); };
    assignment_.set_spec_json(kSpec);
    assignment_.set_max_start_epoch(20);
  }
  // Stores this file at the coordinator and names it in the assignment as of `epoch`.
  void Keep(const std::string& data, int epoch) {
    const std::string sha256 = Sha256Hex(data);
    coordinator_.files[sha256] = data;
    assignment_.mutable_checkpoint()->set_epoch(epoch);
    assignment_.mutable_checkpoint()->set_sha256(sha256);
    assignment_.mutable_checkpoint()->set_bytes(data.size());
  }
  void WriteLocal(const std::string& data) {
    std::filesystem::create_directories(place_.job_dir);
    ASSERT_THAT(WriteFileAtomically(LocalPath(), data), IsOk());
  }
  std::string LocalPath() { return place_.job_dir + "/checkpoint.safetensors"; }
  // The epoch of the checkpoint that the trainer will find; -1 if there is none that it can read.
  int LocalEpoch() {
    const auto file = ReadCheckpointFile(LocalPath());
    return file.ok() ? file->epoch : -1;
  }

  TempDir dir_;
  FakeCoordinator coordinator_;
  v1::Assignment assignment_;
  CheckpointPlace place_;
  std::vector<std::string> notes_;
  int pauses_ = 0;
};

TEST_F(CheckpointTest, MetadataAreReadAndAnythingElseIsNoCheckpoint) {
  WriteLocal(Checkpoint(7));
  const auto file = ReadCheckpointFile(LocalPath());
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->epoch, 7);
  EXPECT_EQ(file->spec, kSpec);
  EXPECT_EQ(ReadCheckpointFile(dir_ / "none").status().code(), absl::StatusCode::kNotFound);
  const std::string whole = Checkpoint(7);
  for (const std::string& wrong :
       {std::string(), whole.substr(0, 7), whole.substr(0, 30), std::string(8, '\xff') + "{}",
        std::string("\2\0\0\0\0\0\0\0{}", 10), Checkpoint(-1)}) {
    WriteLocal(wrong);
    EXPECT_EQ(ReadCheckpointFile(LocalPath()).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST_F(CheckpointTest, ANewerOneIsFetchedAndAnOlderOneIsNot) {
  Keep(Checkpoint(10), 10);
  FetchCheckpoint(place_, absl::Seconds(10));
  EXPECT_EQ(LocalEpoch(), 10);
  WriteLocal(Checkpoint(9));
  FetchCheckpoint(place_, absl::Seconds(10));
  EXPECT_EQ(LocalEpoch(), 10);
  coordinator_.calls.clear();
  for (const int epoch : {10, 11, 20}) {
    WriteLocal(Checkpoint(epoch));
    FetchCheckpoint(place_, absl::Seconds(10));
    EXPECT_EQ(LocalEpoch(), epoch);
  }
  EXPECT_THAT(coordinator_.calls, IsEmpty());
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(CheckpointTest, WhatIsBeyondTheStoredCurveIsNotUsed) {
  Keep(Checkpoint(10), 10);
  WriteLocal(Checkpoint(21));  // more epochs than are stored: the trainer would start from scratch
  FetchCheckpoint(place_, absl::Seconds(10));
  EXPECT_EQ(LocalEpoch(), 10);
  WriteLocal(Checkpoint(15, R"({"seed":2})"));  // of another job
  FetchCheckpoint(place_, absl::Seconds(10));
  EXPECT_EQ(LocalEpoch(), 10);
  std::filesystem::remove(LocalPath());
  assignment_.set_max_start_epoch(9);
  FetchCheckpoint(place_, absl::Seconds(10));
  EXPECT_EQ(LocalEpoch(), -1);
}

TEST_F(CheckpointTest, WhatCannotBeFetchedLeavesTheLocalOneAndSaysSo) {
  WriteLocal(Checkpoint(3));
  Keep(Checkpoint(10), 10);
  coordinator_.files.clear();
  FetchCheckpoint(place_, absl::Seconds(10));
  EXPECT_EQ(LocalEpoch(), 3);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("epoch 10 could not be fetched: no such file")));
  // The hash is as named, but the content is not as announced.
  Keep(Checkpoint(11), 10);
  FetchCheckpoint(place_, absl::Seconds(10));
  Keep(Checkpoint(10, R"({"seed":2})"), 10);
  FetchCheckpoint(place_, absl::Seconds(10));
  Keep("nothing of the kind", 10);
  FetchCheckpoint(place_, absl::Seconds(10));
  EXPECT_EQ(LocalEpoch(), 3);
  EXPECT_EQ(notes_.size(), 4u);
  EXPECT_EQ(pauses_, 0);
  EXPECT_TRUE(std::filesystem::is_empty(place_.attempt_dir));
}

TEST_F(CheckpointTest, ACoordinatorThatIsAwayIsAskedAgainForAWhile) {
  Keep(Checkpoint(10), 10);
  coordinator_.failures = {absl::ResourceExhaustedError("too many"),
                           absl::UnavailableError("away")};
  FetchCheckpoint(place_, absl::Seconds(10));
  EXPECT_EQ(LocalEpoch(), 10);
  EXPECT_EQ(pauses_, 2);
  std::filesystem::remove(LocalPath());
  coordinator_.failures = {absl::UnavailableError("away")};
  FetchCheckpoint(place_, absl::ZeroDuration());
  EXPECT_EQ(LocalEpoch(), -1);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("away; training starts without it")));
  coordinator_.failures = {absl::UnavailableError("away")};
  place_.stopped = [this] { return coordinator_.failures.empty(); };
  FetchCheckpoint(place_, absl::Seconds(10));
  EXPECT_EQ(LocalEpoch(), -1);
  EXPECT_EQ(notes_.size(), 1u) << "a cancelled attempt has nothing to say";
}

class StoreTransferTest : public CheckpointTest {
 protected:
  StoreTransferTest() : store_(dir_ / "store", &coordinator_) {
    EXPECT_THAT(WriteFileAtomically(dir_ / "file", kData), IsOk());
  }
  ArtifactFile File(const std::string& path) {
    return {.path = path, .sha256 = Sha256Hex(kData), .bytes = kData.size()};
  }
  std::string Stored() {
    const std::string sha256 = Sha256Hex(kData);
    return absl::StrCat(dir_ / "store", "/", sha256.substr(0, 2), "/", sha256);
  }
  const std::function<bool()> go_on_ = [] { return false; };
  const std::string kData = "what is in the file";
  StoreTransfer store_;
};

TEST_F(StoreTransferTest, FilesGoThroughTheDirectoryAndOnlyTheirNamesToTheCoordinator) {
  ASSERT_THAT(store_.Put(File(dir_ / "file"), go_on_), IsOk());
  EXPECT_EQ(*ReadFile(Stored(), 100), kData);
  ASSERT_THAT(store_.Put(File(dir_ / "file"), go_on_), IsOk());  // the file is there already
  ASSERT_THAT(store_.Get(File(dir_ / "back"), go_on_), IsOk());
  EXPECT_EQ(*ReadFile(dir_ / "back", 100), kData);
  EXPECT_THAT(coordinator_.calls, ElementsAre("announce", "announce"));
}

TEST_F(StoreTransferTest, WhereTheDirectoryIsOfNoUseTheCoordinatorIs) {
  coordinator_.announced = absl::NotFoundError("no such file here");
  ASSERT_THAT(store_.Put(File(dir_ / "file"), go_on_), IsOk());
  EXPECT_THAT(coordinator_.calls, ElementsAre("announce", "put"));
  coordinator_.calls.clear();
  ASSERT_THAT(WriteFileAtomically(Stored(), "damaged on disk   ."), IsOk());
  ASSERT_THAT(store_.Get(File(dir_ / "back"), go_on_), IsOk());
  std::filesystem::remove(Stored());
  ASSERT_THAT(store_.Get(File(dir_ / "back"), go_on_), IsOk());
  EXPECT_EQ(*ReadFile(dir_ / "back", 100), kData);
  StoreTransfer nowhere(dir_ / "file", &coordinator_);  // not a directory
  ASSERT_THAT(nowhere.Put(File(dir_ / "file"), go_on_), IsOk());
  EXPECT_THAT(coordinator_.calls, ElementsAre("get", "get", "put"));
}

TEST_F(StoreTransferTest, ARefusalIsTheCallersAndAFileThatIsNotWhatItIsSaidToBeIsNotStored) {
  coordinator_.announced = absl::ResourceExhaustedError("full");
  EXPECT_EQ(store_.Put(File(dir_ / "file"), go_on_).code(), absl::StatusCode::kResourceExhausted);
  std::filesystem::remove_all(dir_ / "store");
  ASSERT_THAT(WriteFileAtomically(dir_ / "file", "something else"), IsOk());
  EXPECT_THAT(store_.Put(File(dir_ / "file"), go_on_), IsOk());  // the coordinator decides
  EXPECT_FALSE(std::filesystem::exists(Stored()));
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(Stored()).parent_path()));
}

}  // namespace
}  // namespace pelab::agent
