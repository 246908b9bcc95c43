// A backup while epochs arrive: it is consistent and complete, and can be served like any other
// database.
#include "core/db/backup/backup.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "core/db/check/check.h"
#include "pelab/v1/maintenance.grpc.pb.h"
#include "tests/contract/rpc/coordinator_fixture.h"
#include "tests/support/temp_dir.h"

namespace pelab {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class BackupTest : public CoordinatorTest {
 protected:
  absl::StatusOr<db::BackupReport> Backup(const std::string& target) {
    auto writer = db::BackupWriter::Create(target);
    if (!writer.ok()) return writer.status();
    const auto context = Context();
    const auto stub = v1::Maintenance::NewStub(channel_);
    const auto stream = stub->Backup(context.get(), v1::BackupRequest());
    v1::BackupPart part;
    absl::Status status;
    while (stream->Read(&part)) status.Update(Receive(part, **writer));
    const grpc::Status end = stream->Finish();
    EXPECT_TRUE(end.ok()) << end.error_message();
    if (!status.ok()) return status;
    return (*writer)->Finish();
  }
  static absl::Status Receive(const v1::BackupPart& part, db::BackupWriter& writer) {
    if (part.has_header()) {
      writer.Announce(part.header().database_bytes(), part.header().artifacts());
    }
    if (part.has_database()) return writer.AppendDatabase(part.database());
    if (part.has_data()) return writer.AppendArtifact(part.data());
    if (part.file().missing()) return writer.ArtifactIsMissing(part.file().sha256());
    if (part.has_file()) return writer.BeginArtifact({part.file().sha256(), part.file().bytes()});
    return absl::OkStatus();
  }
  void ExpectSound(const std::string& database) {
    const auto checks = db::CheckDatabase(database);
    ASSERT_TRUE(checks.ok()) << checks.status();
    for (const db::Check& check : *checks) {
      EXPECT_THAT(check.problems, IsEmpty()) << check.name;
    }
  }
  void ExpectNothingLeft() {
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string name = entry.path().filename().string();
      EXPECT_THAT(name, testing::Not(HasSubstr(".backup-")));
      EXPECT_THAT(name, testing::Not(HasSubstr(".partial")));
    }
  }
  void ServeInstead(const std::string& database) {
    coordinator_.reset();
    options_.database = database;
    Start();
  }
};

TEST_F(BackupTest, UnderLoadItIsConsistentAndServedLikeTheOriginal) {
  constexpr int kEpochs = 100'000;
  Submit(Document("s", "[0]", kEpochs), "a");
  FakeWorker worker(channel_, "w1", 2);
  Script first(worker.AwaitAssignment());
  Script second(worker.AwaitAssignment());
  const std::string weights(3 << 20, 'w');
  worker.Send({first.Started(0, kEpochs),
               first.Artifact(Put(first.assignment(), weights), weights.size())});
  worker.Send({second.Started(0, kEpochs)});
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> acknowledged = 0;
  std::thread load([&] {
    for (int epoch = 0; epoch < kEpochs && !stop;) {
      std::vector<v1::Event> events;
      for (const int end = epoch + 20; epoch < end; ++epoch) {
        for (Script* script : {&first, &second}) {
          events.push_back(script->Epoch(epoch));
          events.back().mutable_epoch()->set_test_correct(epoch % 97);
        }
      }
      worker.Send(events);
      worker.AwaitAck(second.assignment().attempt_id(), second.sequence());
      const v1::Ack ack = worker.AwaitAck(first.assignment().attempt_id(), first.sequence());
      ASSERT_FALSE(ack.superseded());
      acknowledged = ack.sequence();
    }
  });
  const auto await_more = [&](std::uint64_t than) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (acknowledged <= than && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  };
  await_more(200);
  constexpr int kCopies = 3;
  for (int i = 0; i < kCopies; ++i) {
    const std::uint64_t before = acknowledged;
    const std::string copy = absl::StrCat(directory_, "/copy", i, ".db");
    const auto report = Backup(copy);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->artifacts, 1u);
    EXPECT_EQ(report->artifact_bytes, weights.size());
    EXPECT_THAT(report->missing_artifacts, IsEmpty());
    ExpectSound(copy);
    // The backup contains everything acknowledged before it was requested: all but two events of
    // the first attempt are epochs, and the second attempt is as far.
    const auto info = db::ReadInfo(copy);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_GE(info->epochs, static_cast<std::int64_t>(2 * (before - 2)));
    await_more(acknowledged);  // epochs are stored meanwhile
  }
  stop = true;
  load.join();
  ExpectNothingLeft();
  worker.Vanish();
  // The restored copy knows both attempts, and they continue.
  ServeInstead(directory_ + "/copy0.db");
  const v1::ListJobsResponse jobs = Jobs("s");
  ASSERT_EQ(jobs.jobs_size(), 2);
  for (const v1::JobRow& job : jobs.jobs()) EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNING);
  FakeWorker again(channel_, "w1", 2, {Holding(first.assignment())});
  EXPECT_TRUE(again.AwaitWelcome().held(0).accepted());
  coordinator_.reset();
  ExpectSound(directory_ + "/copy0.db");
}

// Opening a pipe would wait for a writer, with the hold of all files.
TEST_F(BackupTest, APipeInPlaceOfAFileIsAMissingFile) {
  Submit(Document("s"), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script(worker.AwaitAssignment());
  const std::string sha256 = Put(script.assignment(), "weights");
  worker.Send({script.Started(0, 3), script.Artifact(sha256, 7)});
  worker.AwaitAck(script.assignment().attempt_id(), 2);
  const std::string path = *db::ArtifactPath(options_.database, sha256);
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto report = Backup(directory_ + "/copy.db");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing_artifacts, testing::ElementsAre(sha256));
  v1::GetArtifactRequest request;
  request.set_sha256(sha256);
  const auto context = Context();
  const auto reader = results_->GetArtifact(context.get(), request);
  v1::ArtifactChunk chunk;
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(BackupTest, AClientThatLeavesAndAServerThatStopsLeaveNothing) {
  Submit(Document("s"), "a");
  const std::string weights(12 << 20, 'w');
  FakeWorker worker(channel_, "w1", 1);
  Script script(worker.AwaitAssignment());
  worker.Send(
      {script.Started(0, 3), script.Artifact(Put(script.assignment(), weights), weights.size())});
  worker.AwaitAck(script.assignment().attempt_id(), 2);
  const auto stub = v1::Maintenance::NewStub(channel_);
  const auto begin = [&](grpc::ClientContext& context) {
    auto stream = stub->Backup(&context, v1::BackupRequest());
    v1::BackupPart part;
    EXPECT_TRUE(stream->Read(&part));
    EXPECT_EQ(part.header().artifacts(), 1u);
    EXPECT_EQ(part.header().artifact_bytes(), weights.size());
    return stream;
  };
  {
    // Two clients stop reading. A third is refused with a message, and all other requests are
    // served.
    grpc::ClientContext one;
    grpc::ClientContext two;
    const auto first = begin(one);
    const auto second = begin(two);
    const auto context = Context();
    const auto third = stub->Backup(context.get(), v1::BackupRequest());
    v1::BackupPart part;
    EXPECT_FALSE(third->Read(&part));
    const grpc::Status refused = third->Finish();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(refused.error_message(), HasSubstr("backups are under way"));
    EXPECT_EQ(GetSweep("s").cells(), 4u);
    one.TryCancel();
    EXPECT_FALSE(first->Finish().ok());
    const absl::Time before = absl::Now();
    coordinator_->Stop();
    EXPECT_LT(absl::Now() - before, absl::Seconds(3));
    while (second->Read(&part)) {  // data that had arrived; the status follows it
    }
    EXPECT_FALSE(second->Finish().ok());
  }
  ExpectNothingLeft();
}

TEST_F(BackupTest, WhatAKilledCoordinatorWasCopyingGoesAtTheNextStart) {
  const std::string left = options_.database + ".backup-123";
  coordinator_.reset();
  std::ofstream(left) << "half";
  Start();
  EXPECT_FALSE(std::filesystem::exists(left));
}

// What a coordinator sends may be wrong, whoever runs it.
class BackupWriterTest : public testing::Test {
 protected:
  BackupWriterTest() {
    auto writer = db::BackupWriter::Create(target_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    if (writer.ok()) writer_ = *std::move(writer);
  }
  std::size_t Files() {
    writer_.reset();
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  TempDir folder_;
  const std::string target_ = folder_ / "copy.db";
  std::unique_ptr<db::BackupWriter> writer_;
};

TEST_F(BackupWriterTest, WritesNoFileWhoseNameIsNoHash) {
  std::ofstream(folder_ / "victim") << "victim";
  writer_->Announce(0, 100);
  for (const char* name : {"./../victim", "../../victim", "zz", "", "/tmp/victim"}) {
    const absl::Status refused = writer_->BeginArtifact({name, 5});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("is no SHA-256"));
  }
  EXPECT_EQ(std::filesystem::file_size(folder_ / "victim"), 6u);
  EXPECT_EQ(Files(), 1u);
}

TEST_F(BackupWriterTest, StopsASourceAtWhatItAnnounced) {
  const auto refuses = [](const absl::Status& status, const std::string& what) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  };
  refuses(writer_->AppendDatabase("x"), "more than the 0 bytes");  // before any announcement
  writer_->Announce(10, 2);
  EXPECT_TRUE(writer_->AppendDatabase("123456789").ok());
  refuses(writer_->AppendDatabase("xx"), "more than the 10 bytes");
  const std::string hash = Sha256Hex("0123456789");
  ASSERT_TRUE(writer_->BeginArtifact({hash, 10}).ok());
  EXPECT_TRUE(writer_->AppendArtifact("0123456789").ok());
  refuses(writer_->AppendArtifact("x"), hash);
  EXPECT_FALSE(writer_->BeginArtifact({hash, 10}).ok()) << "the same file twice";
  refuses(writer_->ArtifactIsMissing(Sha256Hex("third")), "more than the 2 files");
  EXPECT_EQ(Files(), 0u);
}

}  // namespace
}  // namespace pelab
