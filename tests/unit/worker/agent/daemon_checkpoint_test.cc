// A worker that uploads its checkpoints and continues from those of other workers.
#include "tests/unit/worker/agent/daemon_fixture.h"

namespace pelab::agent {
namespace {

using ::testing::HasSubstr;

class DaemonCheckpointTest : public DaemonTest {
 protected:
  void StartBothWith(std::vector<std::string> flags) {
    StartFleet();
    StartWorkerWith(std::move(flags));
    ASSERT_TRUE(fleet_->Await([&] { return fleet_->connected(); }));
  }
  void StartWorkerWith(std::vector<std::string> flags, const std::string& work_dir = "w") {
    SpawnOptions options = WorkerOptions();
    for (std::string& word : options.argv) {
      if (word == dir_ / "w") word = dir_ / work_dir;
    }
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    auto worker = Process::Spawn(options);
    ASSERT_THAT(worker, IsOk());
    worker_.emplace(*std::move(worker));
  }
  // The checkpoints that were reported to the coordinator. Each must come after the epochs that it
  // contains.
  std::vector<v1::Checkpoint> Checkpoints(std::int64_t attempt_id) {
    std::vector<v1::Checkpoint> checkpoints;
    int next = 0;
    const StoredAttempt stored = fleet_->Stored().at(attempt_id);
    for (const v1::Event& event : stored.events) {
      if (event.has_started()) next = event.started().start_epoch();
      if (event.has_epoch()) next = event.epoch().epoch() + 1;
      if (!event.has_checkpoint()) continue;
      EXPECT_LE(event.checkpoint().epoch(), next);
      checkpoints.push_back(event.checkpoint());
    }
    return checkpoints;
  }
  // Checks the content that the trainer double writes instead of tensors.
  void ExpectStored(const v1::Checkpoint& checkpoint) {
    const auto files = fleet_->Artifacts();
    const auto found = files.find(checkpoint.sha256());
    ASSERT_TRUE(found != files.end());
    EXPECT_EQ(found->second.size(), checkpoint.bytes());
    EXPECT_THAT(found->second, HasSubstr(absl::StrCat("state of epoch ", checkpoint.epoch())));
  }
  // The same job, assigned to a worker as its next attempt.
  static v1::Assignment Again(const v1::Assignment& before, std::int64_t attempt_id,
                              const v1::Checkpoint& checkpoint, int stored) {
    v1::Assignment again = before;
    again.set_attempt_id(attempt_id);
    again.set_max_start_epoch(stored);
    again.mutable_checkpoint()->set_epoch(checkpoint.epoch());
    again.mutable_checkpoint()->set_sha256(checkpoint.sha256());
    again.mutable_checkpoint()->set_bytes(checkpoint.bytes());
    return again;
  }
  int StartEpoch(std::int64_t attempt_id) {
    EXPECT_TRUE(fleet_->Await([&] { return !fleet_->Stored().at(attempt_id).events.empty(); }));
    return fleet_->Stored().at(attempt_id).events.at(0).started().start_epoch();
  }
};

TEST_F(DaemonCheckpointTest, SendsTheNewestNowAndThenAndTellsOfIt) {
  StartBothWith({"--checkpoint-upload", "100ms", "--checkpoint-every", "2epochs"});
  fleet_->Assign(MakeAssignment(1, "keeps", 100000));
  ASSERT_TRUE(fleet_->Await([&] { return Checkpoints(1).size() >= 3; }));
  const auto checkpoints = Checkpoints(1);
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    ExpectStored(checkpoints[i]);
    if (i == 0) continue;
    EXPECT_GT(checkpoints[i].epoch(), checkpoints[i - 1].epoch());
  }
  EXPECT_THAT(fleet_->Stored().at(1).log, HasSubstr("--checkpoint-epochs 2"));
}

TEST_F(DaemonCheckpointTest, ADrainHandsTheLastOneOverAndAnotherWorkerGoesOnFromIt) {
  StartBothWith({});  // every 5 minutes
  const v1::Assignment first = MakeAssignment(1, "keeps", 100000);
  fleet_->Assign(first);
  AwaitEpochs(1, 4);
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_mode(v1::Drain::CHECKPOINT);
  fleet_->Send(message);
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  const auto checkpoints = Checkpoints(1);
  ASSERT_EQ(checkpoints.size(), 1u);
  const int stored = static_cast<int>(fleet_->Stored().at(1).epochs().size());
  EXPECT_EQ(checkpoints[0].epoch(), stored);
  ExpectStored(checkpoints[0]);
  worker_->Signal(SIGTERM);
  worker_->Wait();

  StartWorkerWith({}, "another");
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Hellos().size() == 2; }));
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->connected(); }));
  fleet_->Assign(Again(first, 2, checkpoints[0], stored));
  EXPECT_EQ(StartEpoch(2), stored);
}

TEST_F(DaemonCheckpointTest, AWorkerThatEndsHandsItsCheckpointsOver) {
  StartBothWith({"--checkpoint-every", "1h"});
  fleet_->Assign(MakeAssignment(1, "keeps", 100000));
  AwaitEpochs(1, 4);
  worker_->Signal(SIGTERM);
  EXPECT_TRUE(worker_->Wait().ok());
  EXPECT_EQ(fleet_->Stored().at(1).finished()->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  const auto checkpoints = Checkpoints(1);
  ASSERT_EQ(checkpoints.size(), 1u);
  ExpectStored(checkpoints[0]);
  EXPECT_THAT(fleet_->Stored().at(1).log, HasSubstr("--checkpoint-seconds 3600"));
}

TEST_F(DaemonCheckpointTest, NeverMeansNever) {
  StartBothWith({"--checkpoint-upload", "0"});
  fleet_->Assign(MakeAssignment(1, "keeps", 100000));
  AwaitEpochs(1, 4);
  worker_->Signal(SIGTERM);
  EXPECT_TRUE(worker_->Wait().ok());
  EXPECT_TRUE(fleet_->Stored().at(1).finished().has_value());
  EXPECT_TRUE(Checkpoints(1).empty());
  EXPECT_TRUE(fleet_->Artifacts().empty());
}

TEST_F(DaemonCheckpointTest, ARefusalStopsNoTrainingAndIsSaidOnce) {
  StartBothWith({"--checkpoint-upload", "50ms"});
  fleet_->SetArtifactError(8);  // resource exhausted: the quota is full
  fleet_->Assign(MakeAssignment(1, "keeps", 30));
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Uploads() >= 3; }));
  fleet_->SetArtifactError(14);  // away: tried again and again
  const int uploads = fleet_->Uploads();
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Uploads() >= uploads + 2; }));
  fleet_->SetArtifactError(std::nullopt);
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_FALSE(Checkpoints(1).empty());
  const std::string log = fleet_->Stored().at(1).log;
  const std::string words = "could not be uploaded: as the test wants it; training goes on";
  const std::size_t at = log.find(words);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find(words, at + 1), std::string::npos);
}

TEST_F(DaemonCheckpointTest, ACoordinatorThatIsAwayHoldsUpNoEndingWorker) {
  StartBothWith({});
  const v1::Assignment assignment = MakeAssignment(1, "keeps", 100000);
  fleet_->Assign(assignment);
  AwaitEpochs(1, 4);
  const auto stored = fleet_->Stored();
  fleet_.reset();
  const absl::Time before = absl::Now();
  worker_->Signal(SIGTERM);
  EXPECT_TRUE(worker_->Wait().ok());
  EXPECT_LT(absl::Now() - before, absl::Seconds(6));
  EXPECT_TRUE(std::filesystem::exists(JobDir(assignment) + "/checkpoint.safetensors"));
}

TEST_F(DaemonCheckpointTest, WhatCannotBeFetchedIsNoFailure) {
  StartBothWith({});
  v1::Checkpoint gone;
  gone.set_epoch(5);
  gone.set_sha256(std::string(64, 'e'));
  gone.set_bytes(100);
  fleet_->Assign(Again(MakeAssignment(1, "keeps", 8), 1, gone, 6));
  EXPECT_EQ(StartEpoch(1), 0);
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_TRUE(fleet_->Await([&] {
    return fleet_->Stored().at(1).log.find("epoch 5 could not be fetched") != std::string::npos;
  }));
  // Damaged in transit.
  const v1::Assignment second = MakeAssignment(2, "keeps", 8);
  gone.set_sha256(fleet_->KeepArtifact(std::string(100, 'x')));
  fleet_->SendInstead(std::string(100, 'y'));
  fleet_->Assign(Again(second, 2, gone, 6));
  EXPECT_EQ(StartEpoch(2), 0);
  EXPECT_EQ(fleet_->AwaitFinished(2)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
}

TEST_F(DaemonCheckpointTest, CancelEndsAFetchAndAnUpload) {
  StartBothWith({"--checkpoint-upload", "50ms"});
  fleet_->SetArtifactError(14);
  v1::Checkpoint away;
  away.set_epoch(5);
  away.set_sha256(std::string(64, 'e'));
  fleet_->Assign(Again(MakeAssignment(1, "keeps", 100000), 1, away, 6));
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Downloads() >= 2; }));
  fleet_->Cancel(1);
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_CANCELLED);
  fleet_->Assign(MakeAssignment(2, "keeps", 100000));
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Uploads() >= 2; }));
  fleet_->Cancel(2);
  EXPECT_EQ(fleet_->AwaitFinished(2)->outcome(), v1::ATTEMPT_OUTCOME_CANCELLED);
  EXPECT_TRUE(Checkpoints(2).empty());
}

TEST_F(DaemonCheckpointTest, SharedDiskCarriesTheFiles) {
  const std::string store = dir_ / "store";
  std::filesystem::create_directories(store);
  StartFleet();
  fleet_->SetStore(store);
  StartWorkerWith({"--checkpoint-upload", "50ms", "--artifact-store", store});
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->connected(); }));
  const v1::Assignment assignment = MakeAssignment(1, "keeps", 20);
  fleet_->Assign(assignment);
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  ASSERT_FALSE(Checkpoints(1).empty());
  const v1::Checkpoint checkpoint = Checkpoints(1).back();
  EXPECT_TRUE(std::filesystem::exists(
      absl::StrCat(store, "/", checkpoint.sha256().substr(0, 2), "/", checkpoint.sha256())));
  EXPECT_EQ(fleet_->Artifacts().at(checkpoint.sha256()), "in the store");
  // Back on the first worker: the file is not downloaded.
  v1::Assignment next = Again(assignment, 2, checkpoint, 20);
  next.set_job_id(7777);  // another directory
  fleet_->Assign(next);
  EXPECT_EQ(StartEpoch(2), checkpoint.epoch());
  EXPECT_EQ(fleet_->Downloads(), 0);
}

TEST_F(DaemonCheckpointTest, FlagsThatMakeNoSenseAreRefused) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--checkpoint-every", "0epochs"},
                                             {"--checkpoint-every", "often"},
                                             {"--checkpoint-every", "5"},
                                             {"--checkpoint-upload", "5"},
                                             {"--idle-exit", "0"},
                                             {"--time-limit", "slrum"},
                                             {"--time-margin", "25h"},
                                             {"--artifact-store", "/no/such/directory"}}) {
    StartWorkerWith(wrong);
    const ExitStatus status = worker_->Wait();
    EXPECT_EQ(status.code, 2) << wrong[0] << " " << wrong[1];
  }
}

}  // namespace
}  // namespace pelab::agent
