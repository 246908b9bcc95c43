// A worker whose trainer takes several jobs at a time.
#include "tests/unit/worker/agent/daemon_fixture.h"

namespace pelab::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DaemonPackTest : public DaemonTest {
 protected:
  v1::AttemptOutcome Outcome(std::int64_t attempt_id) {
    const auto finished = fleet_->AwaitFinished(attempt_id);
    return finished.has_value() ? finished->outcome() : v1::ATTEMPT_OUTCOME_UNSPECIFIED;
  }
  std::string Log(std::int64_t attempt_id) { return fleet_->Stored().at(attempt_id).log; }
  bool IsHeld(std::int64_t attempt_id) {
    for (const v1::HeldAttempt& held : fleet_->LastHeartbeatHeld()) {
      if (held.attempt_id() == attempt_id) return true;
    }
    return false;
  }
  void ExpectWholeLine(std::int64_t attempt_id, int epochs) {
    const StoredAttempt stored = fleet_->Stored().at(attempt_id);
    EXPECT_FALSE(stored.has_gap);
    ASSERT_EQ(stored.epochs().size(), static_cast<std::size_t>(epochs));
    for (int epoch = 0; epoch < epochs; ++epoch) EXPECT_EQ(stored.epochs()[epoch], epoch);
  }
};

TEST_F(DaemonPackTest, OneTrainerTakesAllAndEachHasItsOwnEvents) {
  StartBoth();
  const std::vector<v1::Assignment> pack = {MakeAssignment(1, "slow", 30),
                                            MakeAssignment(2, "plain", 3), MakeAssignment(3, "ok")};
  fleet_->AssignPack(pack);
  for (const std::int64_t id : {1, 2, 3}) AwaitEpochs(id, 1);
  const int trainer = TrainerPid(pack[0]);
  EXPECT_EQ(TrainerPid(pack[1]), trainer);
  EXPECT_EQ(TrainerPid(pack[2]), trainer);
  for (const std::int64_t id : {1, 2, 3}) {
    EXPECT_EQ(Outcome(id), v1::ATTEMPT_OUTCOME_SUCCEEDED);
    const StoredAttempt stored = fleet_->Stored().at(id);
    const v1::Event& artifact = stored.events.at(stored.events.size() - 2);
    EXPECT_EQ(fleet_->Artifacts().at(artifact.artifact().sha256()),
              absl::StrCat("weights of job ", 1000 + id));
    EXPECT_THAT(stored.log, HasSubstr("--packing auto"));
  }
  ExpectWholeLine(1, 30);
  ExpectWholeLine(2, 3);
  ExpectWholeLine(3, 3);
  EXPECT_TRUE(fleet_->Stored().at(3).events.at(4).has_head_ablation());
  for (const v1::Assignment& each : pack) {
    EXPECT_TRUE(fleet_->Await([&] { return !std::filesystem::exists(JobDir(each)); }));
  }
  EXPECT_TRUE(AttemptsEmpty());
}

TEST_F(DaemonPackTest, OneThatIsDoneDoesNotWaitForTheOthers) {
  StartBoth();
  const std::vector<v1::Assignment> pack = {MakeAssignment(1, "slow", 100000),
                                            MakeAssignment(2, "plain", 3)};
  fleet_->AssignPack(pack);
  EXPECT_EQ(Outcome(2), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  AwaitEpochs(1, 1);  // the second job may end before the first has written its trainer's PID
  EXPECT_TRUE(Alive(TrainerPid(pack[0])));
  // The attempt is no longer reported as held, although the trainer may still use its directory.
  EXPECT_TRUE(fleet_->Await([&] { return IsHeld(1) && !IsHeld(2); }));
  EXPECT_TRUE(std::filesystem::exists(JobDir(pack[1])));
  // The slot and the directories belong to the trainer until it ends.
  v1::Assignment next = MakeAssignment(3, "plain", 3);
  fleet_->Assign(next);
  next = pack[1];
  next.set_attempt_id(4);
  next.set_slot(1);
  fleet_->Assign(next);
  const int heartbeats = fleet_->Heartbeats();
  EXPECT_TRUE(fleet_->Await([&] { return fleet_->Heartbeats() >= heartbeats + 3; }));
  EXPECT_TRUE(fleet_->Stored().at(3).events.empty());
  EXPECT_TRUE(fleet_->Stored().at(4).events.empty());
  fleet_->Cancel(1);
  EXPECT_EQ(Outcome(1), v1::ATTEMPT_OUTCOME_CANCELLED);
  EXPECT_EQ(Outcome(3), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_EQ(Outcome(4), v1::ATTEMPT_OUTCOME_SUCCEEDED);
}

TEST_F(DaemonPackTest, OneIsCancelledWhileTheOthersGoOn) {
  StartBoth();
  const std::vector<v1::Assignment> pack = {MakeAssignment(1, "slow", 100000),
                                            MakeAssignment(2, "slow", 40),
                                            MakeAssignment(3, "slow", 30)};
  fleet_->AssignPack(pack);
  for (const std::int64_t id : {1, 2, 3}) AwaitEpochs(id, 2);
  const int trainer = TrainerPid(pack[0]);
  fleet_->Cancel(1);
  EXPECT_EQ(Outcome(1), v1::ATTEMPT_OUTCOME_CANCELLED);
  EXPECT_TRUE(Alive(trainer)) << "the others need it";
  const std::size_t said = fleet_->Stored().at(1).events.size();
  EXPECT_EQ(Outcome(3), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_EQ(Outcome(2), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  ExpectWholeLine(2, 40);
  EXPECT_EQ(fleet_->Stored().at(1).events.size(), said) << "what the trainer says of it is dropped";
  // The trainer would train the cancelled job for ever.
  EXPECT_TRUE(fleet_->Await([&] {
    return !Alive(trainer) && AttemptsEmpty() && !std::filesystem::exists(JobDir(pack[0]));
  }));
}

TEST_F(DaemonPackTest, AllAreCancelledOneAfterAnother) {
  StartBoth();
  const std::vector<v1::Assignment> pack = {MakeAssignment(1, "stubborn"),
                                            MakeAssignment(2, "stubborn")};
  fleet_->AssignPack(pack);
  AwaitEpochs(1, 1);
  AwaitEpochs(2, 1);
  const int trainer = TrainerPid(pack[0]);
  const absl::Time begin = absl::Now();
  fleet_->Cancel(1);
  fleet_->Cancel(2);
  EXPECT_EQ(Outcome(1), v1::ATTEMPT_OUTCOME_CANCELLED);
  EXPECT_EQ(Outcome(2), v1::ATTEMPT_OUTCOME_CANCELLED);
  EXPECT_FALSE(Alive(trainer)) << "the last one ends with its trainer";
  EXPECT_LT(absl::Now() - begin, absl::Seconds(3));
}

TEST_F(DaemonPackTest, OneThatIsSupersededIsDroppedWithoutAWord) {
  StartBoth();
  const std::vector<v1::Assignment> pack = {MakeAssignment(1, "slow", 100000),
                                            MakeAssignment(2, "slow", 20)};
  fleet_->AssignPack(pack);
  AwaitEpochs(1, 2);
  fleet_->Supersede(1);
  EXPECT_TRUE(fleet_->Await([&] { return !IsHeld(1); }));
  EXPECT_EQ(Outcome(2), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  ExpectWholeLine(2, 20);
  EXPECT_TRUE(fleet_->Await([&] { return AttemptsEmpty(); }));
  EXPECT_FALSE(fleet_->Stored().at(1).finished().has_value());
}

TEST_F(DaemonPackTest, AnErrorOfOneIsItsOwn) {
  StartBoth();
  const std::vector<v1::Assignment> pack = {MakeAssignment(1, "fails"),
                                            MakeAssignment(2, "slow", 20)};
  fleet_->AssignPack(pack);
  const auto failed = fleet_->AwaitFinished(1);
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->outcome(), v1::ATTEMPT_OUTCOME_FAILED);
  EXPECT_EQ(failed->error_kind(), v1::ERROR_KIND_NON_FINITE_LOSS);
  EXPECT_EQ(failed->error(), "the loss is nan");
  EXPECT_FALSE(fleet_->Stored().at(2).finished().has_value()) << "it goes on";
  // The trainer finally exits with 1, which does not concern this job.
  EXPECT_EQ(Outcome(2), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  ExpectWholeLine(2, 20);
}

TEST_F(DaemonPackTest, ATrainerThatDiesEndsAllThatWereNotDone) {
  StartBoth();
  const std::vector<v1::Assignment> pack = {MakeAssignment(1, "slow", 100000),
                                            MakeAssignment(2, "slow", 100000),
                                            MakeAssignment(3, "plain")};
  fleet_->AssignPack(pack);
  EXPECT_EQ(Outcome(3), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  AwaitEpochs(1, 1);
  AwaitEpochs(2, 1);
  kill(TrainerPid(pack[0]), SIGKILL);
  for (const std::int64_t id : {1, 2}) {
    const auto finished = fleet_->AwaitFinished(id);
    ASSERT_TRUE(finished.has_value());
    EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_FAILED);
    EXPECT_EQ(finished->error_kind(), v1::ERROR_KIND_TRAINER_DIED);
    EXPECT_THAT(finished->error(), HasSubstr("ended by signal 9"));
  }
}

TEST_F(DaemonPackTest, ALineThatCannotBeTrustedEndsAll) {
  StartBoth();
  std::int64_t id = 0;
  for (const auto& [mode, text] : std::vector<std::pair<const char*, const char*>>{
           {"garbage", "not a JSON object"},
           {"skips", "reported epoch 2 of 3; expected 1"},
           {"stranger", "of job \"nobody\"; this trainer was given \"1005\", \"1006\""}}) {
    const std::int64_t first = ++id;
    const std::int64_t second = ++id;
    fleet_->AssignPack({MakeAssignment(first, mode), MakeAssignment(second, "slow", 100000)});
    for (const std::int64_t each : {first, second}) {
      const auto finished = fleet_->AwaitFinished(each);
      ASSERT_TRUE(finished.has_value()) << mode;
      EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_FAILED);
      EXPECT_EQ(finished->error_kind(), v1::ERROR_KIND_INTERNAL);
      EXPECT_THAT(finished->error(), HasSubstr(text));
    }
  }
}

TEST_F(DaemonPackTest, ADrainKeepsTheCheckpointOfEach) {
  StartBoth();
  const std::vector<v1::Assignment> pack = {MakeAssignment(1, "keeps", 100000),
                                            MakeAssignment(2, "keeps", 100000),
                                            MakeAssignment(3, "plain")};
  fleet_->AssignPack(pack);
  AwaitEpochs(1, 2);
  AwaitEpochs(2, 2);
  EXPECT_EQ(Outcome(3), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_mode(v1::Drain::CHECKPOINT);
  fleet_->Send(message);
  for (const std::int64_t id : {1, 2}) {
    EXPECT_EQ(Outcome(id), v1::ATTEMPT_OUTCOME_PREEMPTED);
    const StoredAttempt stored = fleet_->Stored().at(id);
    const v1::Event& last = stored.events.at(stored.events.size() - 2);
    ASSERT_TRUE(last.has_checkpoint()) << "handed over before its end";
    EXPECT_EQ(last.checkpoint().epoch(), static_cast<int>(stored.epochs().size()));
    EXPECT_THAT(fleet_->Artifacts().at(last.checkpoint().sha256()),
                HasSubstr(absl::StrCat("state of epoch ", last.checkpoint().epoch())));
    EXPECT_TRUE(std::filesystem::exists(JobDir(pack[id - 1]) + "/checkpoint.safetensors"));
  }
}

TEST_F(DaemonPackTest, ACancelDuringADrainLeavesTheOthersTheirCheckpoints) {
  StartBoth();
  // The trainer obeys slowly: within the grace of the drain, but not within that of the cancel.
  fleet_->AssignPack({MakeAssignment(1, "lingers", 100000), MakeAssignment(2, "lingers", 100000)});
  AwaitEpochs(1, 1);
  AwaitEpochs(2, 1);
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_mode(v1::Drain::CHECKPOINT);
  fleet_->Send(message);
  fleet_->Cancel(1);
  EXPECT_EQ(Outcome(1), v1::ATTEMPT_OUTCOME_CANCELLED);
  const auto finished = fleet_->AwaitFinished(2);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_GE(finished->wall_seconds(), 1.5) << "it was killed with the cancelled one's grace";
}

TEST_F(DaemonPackTest, AWorkerThatEndsPreemptsAll) {
  StartBoth();
  fleet_->AssignPack({MakeAssignment(1, "slow", 100000), MakeAssignment(2, "slow", 100000)});
  AwaitEpochs(1, 1);
  AwaitEpochs(2, 1);
  worker_->Signal(SIGTERM);
  EXPECT_TRUE(worker_->Wait().ok());
  for (const std::int64_t id : {1, 2}) {
    ASSERT_TRUE(fleet_->Stored().at(id).finished().has_value());
    EXPECT_EQ(fleet_->Stored().at(id).finished()->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  }
}

TEST_F(DaemonPackTest, APackThatCrossedADrainIsRefused) {
  StartBoth();
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_mode(v1::Drain::FINISH);
  fleet_->Send(message);
  fleet_->AssignPack({MakeAssignment(1, "plain"), MakeAssignment(2, "plain")});
  for (const std::int64_t id : {1, 2}) {
    EXPECT_EQ(Outcome(id), v1::ATTEMPT_OUTCOME_PREEMPTED);
    EXPECT_EQ(fleet_->Stored().at(id).events.size(), 1u) << "no trainer has started";
    EXPECT_TRUE(fleet_->Stored().at(id).finished()->never_started());
  }
}

TEST_F(DaemonPackTest, CancelReachesOnesThatWaitForTheirSlot) {
  StartBoth();
  fleet_->Assign(MakeAssignment(1, "slow", 100000));
  AwaitEpochs(1, 1);
  fleet_->AssignPack({MakeAssignment(2, "plain"), MakeAssignment(3, "plain")});
  fleet_->Cancel(2);
  EXPECT_EQ(Outcome(2), v1::ATTEMPT_OUTCOME_CANCELLED);
  EXPECT_FALSE(fleet_->Stored().at(3).finished().has_value());
  fleet_->Cancel(1);
  EXPECT_EQ(Outcome(3), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_THAT(Log(3), Not(HasSubstr("--packing"))) << "it was alone by then";
}

TEST_F(DaemonPackTest, WhatBeganOtherwiseHasATrainerOfItsOwn) {
  StartBoth();
  fleet_->KeepArtifact("the kept weights");
  std::vector<v1::Assignment> pack;
  for (std::int64_t id = 1; id <= 5; ++id) pack.push_back(MakeAssignment(id, "plain"));
  for (const int i : {1, 2}) {
    pack[i].mutable_execution()->set_threads(1);
    pack[i].mutable_execution()->set_packing(4);
  }
  pack[4].mutable_weights()->set_sha256(Sha256Hex("the kept weights"));
  pack[4].mutable_weights()->set_bytes(16);
  pack[4].mutable_execution()->set_threads(1);
  pack[4].mutable_execution()->set_packing(1);
  pack[4].set_max_start_epoch(3);
  fleet_->AssignPack(pack);
  for (std::int64_t id = 1; id <= 5; ++id) {
    EXPECT_EQ(Outcome(id), v1::ATTEMPT_OUTCOME_SUCCEEDED) << id;
  }
  EXPECT_THAT(Log(1), AllOf(HasSubstr("--packing auto"), HasSubstr("attempts/4/job.json")));
  EXPECT_THAT(Log(2), AllOf(HasSubstr("--packing 4"), HasSubstr("attempts/3/job.json"),
                            Not(HasSubstr("attempts/1/job.json"))));
  EXPECT_THAT(Log(5), AllOf(HasSubstr("analyze "), Not(HasSubstr("--packing"))));
  // Later attempts get their own settings.
  v1::Assignment again = MakeAssignment(6, "plain");
  again.mutable_execution()->set_threads(1);
  again.mutable_execution()->set_packing(1);
  fleet_->Assign(again);
  EXPECT_EQ(Outcome(6), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_THAT(Log(6), HasSubstr("--packing off"));
  fleet_->Assign(MakeAssignment(7, "plain"));
  EXPECT_EQ(Outcome(7), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_THAT(Log(7), Not(HasSubstr("--packing")));
}

TEST_F(DaemonPackTest, WeightsOfOneAreUploadedByTheNextDaemonToo) {
  StartBoth();
  fleet_->SetArtifactError(14);
  fleet_->AssignPack({MakeAssignment(1, "plain"), MakeAssignment(2, "slow", 100000)});
  ASSERT_TRUE(
      fleet_->Await([&] { return std::filesystem::exists(dir_ / "w/attempts/1/upload.json"); }));
  AwaitEpochs(2, 1);
  kill(worker_->pid(), SIGKILL);
  worker_->Wait();
  fleet_->SetArtifactError(std::nullopt);
  StartWorker();
  EXPECT_EQ(Outcome(1), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_EQ(Outcome(2), v1::ATTEMPT_OUTCOME_PREEMPTED);
}

TEST_F(DaemonPackTest, SlotsSayHowManyJobsTheyTake) {
  StartBoth();
  EXPECT_EQ(fleet_->Hellos().at(0).slots(0).pack(), 1) << "on a CPU";
  worker_->Signal(SIGTERM);
  worker_->Wait();
  SpawnOptions options = WorkerOptions();
  options.argv.insert(options.argv.end(), {"--pack", "5"});
  StartWorker(options);
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Hellos().size() == 2; }));
  EXPECT_EQ(fleet_->Hellos().at(1).slots(0).pack(), 5);
  worker_->Signal(SIGTERM);
  worker_->Wait();
  for (const char* wrong : {"0", "65", "auto"}) {
    options.argv.back() = wrong;
    StartWorker(options);
    EXPECT_EQ(worker_->Wait().code, 2) << wrong;
  }
}

}  // namespace
}  // namespace pelab::agent
