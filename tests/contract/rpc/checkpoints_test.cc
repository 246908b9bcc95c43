// Checkpoints over RPC: uploaded, recorded, given to another worker, deleted; and the quota.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include <fstream>

#include "core/db/check/check.h"
#include "pelab/v1/maintenance.grpc.pb.h"
#include "server/limits.h"
#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointTest : public CoordinatorTest {
 protected:
  // Like Put, on behalf of an attempt.
  grpc::Status Send(const v1::Assignment& assignment, const std::string& data,
                    bool checkpoint = true, bool in_store = false) {
    v1::PutArtifactResponse response;
    const auto context = Context();
    const auto writer = fleet_->PutArtifact(context.get(), &response);
    v1::PutArtifactRequest request = HeaderOf(assignment, data);
    request.mutable_header()->set_checkpoint(checkpoint);
    request.mutable_header()->set_in_store(in_store);
    writer->Write(request);
    request.set_chunk(data);
    if (!in_store) writer->Write(request);
    writer->WritesDone();
    return writer->Finish();
  }
  std::string PathOf(const std::string& data) {
    const std::string sha256 = Sha256Hex(data);
    return directory_ + "/pelab.db.artifacts/" + sha256.substr(0, 2) + "/" + sha256;
  }
  bool Stored(const std::string& data) { return std::filesystem::exists(PathOf(data)); }
  void AwaitGone(const std::string& data) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (Stored(data) && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
    EXPECT_FALSE(Stored(data));
  }
  // Trains up to `epochs` epochs on `worker`, then uploads and reports a checkpoint of that state.
  Script TrainTo(FakeWorker& worker, int epochs, const std::string& data) {
    Script script(worker.AwaitAssignment());
    std::vector<v1::Event> events = {script.Started(0, 3)};
    for (int i = 0; i < epochs; ++i) events.push_back(script.Epoch(i));
    EXPECT_TRUE(Send(script.assignment(), data).ok());
    events.push_back(script.Checkpoint(epochs, Sha256Hex(data), data.size()));
    worker.Send(events);
    EXPECT_FALSE(worker.AwaitAck(script.assignment().attempt_id(), script.sequence()).superseded());
    return script;
  }
  void RestartWith(std::uint64_t quota, absl::Duration grace = absl::Minutes(15)) {
    coordinator_.reset();
    options_.artifact_quota = quota;
    options_.artifact_grace = grace;
    Start();
  }
  void ExpectSound() {
    coordinator_.reset();
    const auto checks = db::CheckDatabase(options_.database);
    ASSERT_TRUE(checks.ok()) << checks.status();
    for (const db::Check& check : *checks) EXPECT_THAT(check.problems, IsEmpty()) << check.name;
  }
};

TEST_F(CheckpointTest, AnotherWorkerGoesOnFromIt) {
  Submit(Document("s", "[0]"), "a");
  auto first = std::make_unique<FakeWorker>(channel_, "w1", 1);
  Script script = TrainTo(*first, 2, "state after 2 epochs");
  first->Send({script.Finished(v1::ATTEMPT_OUTCOME_PREEMPTED)});
  first->AwaitAck(script.assignment().attempt_id(), script.sequence());
  first->Leave();
  FakeWorker second(channel_, "w2", 2);
  v1::Assignment again = second.AwaitAssignment();
  if (again.job_id() != script.assignment().job_id()) again = second.AwaitAssignment();
  ASSERT_EQ(again.job_id(), script.assignment().job_id());
  EXPECT_EQ(again.checkpoint().epoch(), 2);
  EXPECT_EQ(again.checkpoint().sha256(), Sha256Hex("state after 2 epochs"));
  EXPECT_EQ(again.checkpoint().bytes(), 20u);
  EXPECT_EQ(again.max_start_epoch(), 2);
  v1::GetArtifactRequest request;
  request.set_sha256(again.checkpoint().sha256());
  const auto context = Context();
  const auto reader = results_->GetArtifact(context.get(), request);
  v1::ArtifactChunk chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.data(), "state after 2 epochs");
  // The file is deleted when the job ends.
  Script rest(again);
  second.Send({rest.Started(2, 3), rest.Epoch(2), rest.Ablation(),
               rest.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
  AwaitGone("state after 2 epochs");
  ExpectSound();
}

TEST_F(CheckpointTest, OnlyTheNewestFileStays) {
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script = TrainTo(worker, 1, "one");
  ASSERT_TRUE(Send(script.assignment(), "two").ok());
  EXPECT_TRUE(Stored("one"));
  worker.Send({script.Epoch(1), script.Checkpoint(2, Sha256Hex("two"), 3)});
  AwaitGone("one");
  EXPECT_TRUE(Stored("two"));
  ExpectSound();
  EXPECT_TRUE(Stored("two"));
}

TEST_F(CheckpointTest, FilesOfAnAttemptThatIsNotOpenAreRefused) {
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script = TrainTo(worker, 1, "one");
  v1::Assignment other = script.assignment();
  other.set_token(other.token() + 1);
  const grpc::Status refused = Send(other, "two");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("is not open"));
  worker.Send({script.Finished(v1::ATTEMPT_OUTCOME_FAILED, v1::ERROR_KIND_OUT_OF_MEMORY, "x")});
  AwaitGone("one");
  EXPECT_EQ(Send(script.assignment(), "three").error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  // A late event does not bring it back either.
  worker.Send({script.Checkpoint(1, Sha256Hex("three"), 5)});
  EXPECT_TRUE(worker.AwaitAck(script.assignment().attempt_id(), script.sequence()).superseded());
  ExpectSound();
}

TEST_F(CheckpointTest, AnUploadThatBreaksOffLeavesNothing) {
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script = TrainTo(worker, 1, "one");
  {
    grpc::ClientContext context;
    v1::PutArtifactResponse response;
    const auto writer = fleet_->PutArtifact(&context, &response);
    v1::PutArtifactRequest request = HeaderOf(script.assignment(), "two");
    request.mutable_header()->set_bytes(1 << 20);
    request.mutable_header()->set_checkpoint(true);
    writer->Write(request);
    request.set_chunk("tw");
    writer->Write(request);
    context.TryCancel();
    EXPECT_FALSE(writer->Finish().ok());
  }
  RestartWith(options_.artifact_quota);
  EXPECT_FALSE(Stored("two"));
  EXPECT_TRUE(Stored("one"));
  ExpectSound();
}

TEST_F(CheckpointTest, CheckpointsAreRefusedAndGiveWayWhereTheQuotaIsShort) {
  RestartWith(100);
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 2);
  const std::string small(60, 'c');
  Script script = TrainTo(worker, 1, small);
  const grpc::Status refused = Send(script.assignment(), std::string(61, 'd'));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Stored(small));
  // Weights replace the checkpoint.
  const std::string weights(70, 'w');
  ASSERT_TRUE(Send(script.assignment(), weights, /*checkpoint=*/false).ok());
  EXPECT_TRUE(Stored(weights));
  EXPECT_FALSE(Stored(small));
  EXPECT_EQ(Send(script.assignment(), std::string(101, 'x'), false).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  // Training goes on and succeeds.
  worker.Send({script.Epoch(1), script.Epoch(2), script.Ablation(),
               script.Artifact(Sha256Hex(weights), 70),
               script.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
  AwaitSweep("s", [](const auto& s) { return s.jobs().succeeded() == 1; });
  EXPECT_TRUE(Stored(weights));
  ExpectSound();
}

// Somebody with the coordinator's token who holds no attempt, or a wrong token of one.
TEST_F(CheckpointTest, UploadsOfNobodyTakeNoRoomAndNoCheckpoint) {
  RestartWith(100);
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  const std::string small(60, 'c');
  Script script = TrainTo(worker, 1, small);
  v1::Assignment nobody;
  v1::Assignment thief = script.assignment();
  thief.set_token(thief.token() + 1);
  for (int i = 0; i < 5; ++i) {
    const std::string data(90, static_cast<char>('0' + i));
    const grpc::Status refused = Send(nobody, data, /*checkpoint=*/false);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.error_message(), HasSubstr("must name the open attempt"));
    EXPECT_EQ(Send(thief, data, /*checkpoint=*/false).error_code(),
              grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_FALSE(Stored(data));
  }
  EXPECT_TRUE(Stored(small));
  EXPECT_TRUE(Send(script.assignment(), std::string(40, 'd')).ok()) << "there is room";
  ExpectSound();
}

// Uploads that announce much and send nothing.
TEST_F(CheckpointTest, AnAnnouncedSizeTakesNoRoomAndNoCheckpoint) {
  RestartWith(100);
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  const std::string small(50, 'c');
  Script script = TrainTo(worker, 1, small);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<v1::PutArtifactResponse> responses(3);
  std::vector<std::unique_ptr<grpc::ClientWriter<v1::PutArtifactRequest>>> silent;
  for (v1::PutArtifactResponse& response : responses) {
    contexts.push_back(Context());
    silent.push_back(fleet_->PutArtifact(contexts.back().get(), &response));
    const std::string data(100, static_cast<char>('0' + silent.size()));
    silent.back()->Write(HeaderOf(script.assignment(), data));
  }
  // The coordinator has begun these uploads once their temporary files are there.
  const auto begun = [&] {
    std::size_t files = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(directory_ + "/pelab.db.artifacts")) {
      files += entry.path().filename().string().rfind(".upload-", 0) == 0 ? 1 : 0;
    }
    return files;
  };
  const absl::Time deadline = absl::Now() + kPatience;
  while (begun() < silent.size() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(begun(), silent.size());
  EXPECT_TRUE(Stored(small));
  EXPECT_TRUE(Send(script.assignment(), std::string(50, 'd')).ok());
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& writer : silent) EXPECT_FALSE(writer->Finish().ok());
  EXPECT_TRUE(Stored(small));
}

TEST_F(CheckpointTest, OnlySoManyUploadsAreUnderWayAtATime) {
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  const v1::Assignment assignment = worker.AwaitAssignment();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::deque<v1::PutArtifactResponse> responses;
  std::vector<std::unique_ptr<grpc::ClientWriter<v1::PutArtifactRequest>>> silent;
  const auto begin = [&] {
    contexts.push_back(Context());
    silent.push_back(fleet_->PutArtifact(contexts.back().get(), &responses.emplace_back()));
  };
  for (int i = 0; i < limits::kUploads; ++i) begin();
  // An upload more than there are places. While they are taken, it may itself take one, and then
  // one of the silent uploads is refused in its stead.
  grpc::Status refused;
  const absl::Time deadline = absl::Now() + kPatience;
  while ((refused = Send(assignment, "one more")).ok() && absl::Now() < deadline) begin();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("64 files are being uploaded"));
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& writer : silent) EXPECT_FALSE(writer->Finish().ok());
  grpc::Status accepted = refused;
  while (!accepted.ok() && absl::Now() < deadline) accepted = Send(assignment, "one more");
  EXPECT_TRUE(accepted.ok()) << accepted.error_message();
}

TEST_F(CheckpointTest, FilesThatNothingNamesAreCollectedAfterAWhile) {
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script = TrainTo(worker, 1, "one");
  ASSERT_TRUE(Send(script.assignment(), "sent, not told yet").ok());
  coordinator_.reset();
  // The state after a crash between the commit that drops a row and the removal of its file.
  std::filesystem::create_directories(std::filesystem::path(PathOf("orphan")).parent_path());
  std::ofstream(PathOf("orphan")) << "orphan";
  RestartWith(1 << 20, absl::Milliseconds(200));
  AwaitGone("orphan");
  EXPECT_TRUE(Stored("one"));
  EXPECT_TRUE(Stored("sent, not told yet"));
  FakeWorker back(channel_, "w1", 1, {Holding(script.assignment())});
  ASSERT_TRUE(back.AwaitWelcome().held(0).accepted());
  back.Send({script.Epoch(1), script.Checkpoint(2, Sha256Hex("sent, not told yet"), 18)});
  AwaitGone("one");
  EXPECT_TRUE(Stored("sent, not told yet"));
  ExpectSound();
}

// The database may have been made by somebody else: its rows can name any file of the host.
TEST_F(CheckpointTest, ARowWithoutAHashRemovesNothingAndIsNoBackup) {
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script = TrainTo(worker, 1, "one");
  const std::string victim = directory_ + "/victim";
  std::ofstream(victim) << "victim";
  coordinator_.reset();
  SQLite::Database(options_.database, SQLite::OPEN_READWRITE)
      .exec("UPDATE checkpoints SET sha256 = './../victim', bytes = 6");
  Start();
  const auto context = Context();
  const auto stub = v1::Maintenance::NewStub(channel_);
  const auto stream = stub->Backup(context.get(), v1::BackupRequest());
  v1::BackupPart part;
  int missing = 0;
  while (stream->Read(&part)) {
    missing += part.has_file() && part.file().missing();
    EXPECT_FALSE(part.has_data());
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(missing, 1);
  // The next checkpoint replaces that row, and the job ends.
  FakeWorker back(channel_, "w1", 1, {Holding(script.assignment())});
  ASSERT_TRUE(back.AwaitWelcome().held(0).accepted());
  ASSERT_TRUE(Send(script.assignment(), "two").ok());
  back.Send({script.Epoch(1), script.Checkpoint(2, Sha256Hex("two"), 3), script.Epoch(2),
             script.Ablation(), script.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
  AwaitGone("two");  // dropped later than the row without a hash
  EXPECT_TRUE(std::filesystem::exists(victim));
  EXPECT_EQ(GetSweep("s").cells(), 2u);
}

TEST_F(CheckpointTest, ASharedDiskCarriesTheFiles) {
  coordinator_.reset();
  const std::string store = directory_ + "/store";
  options_.artifact_store = {.directory = store};
  Start();
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script = TrainTo(worker, 1, "one");  // the upload goes through the coordinator
  const std::string data = "put there by the worker";
  EXPECT_EQ(Send(script.assignment(), data, true, true).error_code(), grpc::StatusCode::NOT_FOUND);
  std::filesystem::create_directories(std::filesystem::path(PathOf(data)).parent_path());
  std::ofstream(PathOf(data)) << data;
  ASSERT_TRUE(Send(script.assignment(), data, true, true).ok());
  EXPECT_TRUE(std::filesystem::exists(
      absl::StrCat(store, "/", Sha256Hex(data).substr(0, 2), "/", Sha256Hex(data))));
  worker.Send({script.Epoch(1), script.Checkpoint(2, Sha256Hex(data), data.size())});
  AwaitGone("one");
  ExpectSound();
  // An artifact store belongs to one database.
  CoordinatorOptions other = options_;
  other.database = directory_ + "/other.db";
  const auto refused = Coordinator::Start(other);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("belongs to"));
  // Without the flag the coordinator still finds the store. Another directory is an error.
  options_.artifact_store.reset();
  Start();
  coordinator_.reset();
  EXPECT_TRUE(Stored(data));
  options_.artifact_store = {.directory = directory_ + "/elsewhere"};
  EXPECT_THAT(std::string(Coordinator::Start(options_).status().message()), HasSubstr("leads to"));
}

TEST_F(CheckpointTest, AStoreDoesNotTakeThePlaceOfFilesThatAreThere) {
  Submit(Document("s", "[0]"), "a");
  {
    FakeWorker worker(channel_, "w1", 1);
    Put(worker.AwaitAssignment(), "kept");
  }
  coordinator_.reset();
  options_.artifact_store = {.directory = directory_ + "/store"};
  EXPECT_THAT(std::string(Coordinator::Start(options_).status().message()),
              HasSubstr("holds files already"));
}

}  // namespace
}  // namespace pelab
