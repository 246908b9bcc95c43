// A worker in normal operation: training, stopping, and crashes of either side.
#include "tests/unit/worker/agent/daemon_fixture.h"
#include "worker/agent/limits.h"

namespace pelab::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<int> UpTo(int epochs) {
  std::vector<int> all;
  for (int epoch = 0; epoch < epochs; ++epoch) all.push_back(epoch);
  return all;
}

TEST_F(DaemonTest, TrainsAJobAndShipsEverything) {
  StartBoth();
  const v1::Hello hello = fleet_->Hellos().at(0);
  EXPECT_EQ(hello.protocol(), 1);
  ASSERT_EQ(hello.slots_size(), 2);
  EXPECT_EQ(hello.slots(1).slot(), 1);
  EXPECT_EQ(hello.slots(1).device_kind(), "cpu");
  EXPECT_THAT(hello.capabilities_json(), HasSubstr("\"rope\":1"));
  const v1::Assignment assignment = MakeAssignment(7, "ok", 3);
  fleet_->Assign(assignment);

  const auto finished = fleet_->AwaitFinished(7);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED) << finished->error();
  EXPECT_EQ(finished->wall_seconds(), 1.5);
  const StoredAttempt stored = fleet_->Stored().at(7);
  EXPECT_FALSE(stored.has_gap);
  ASSERT_THAT(stored.events, SizeIs(7));  // started, 3 epochs, ablation, artifact, finished
  EXPECT_EQ(stored.events[0].started().epochs(), 3);
  EXPECT_THAT(stored.events[0].started().environment_json(), HasSubstr("\"threads\":1"));
  EXPECT_THAT(stored.epochs(), ElementsAre(0, 1, 2));
  EXPECT_EQ(stored.events[3].epoch().test_loss(), 0.30000000000000004);
  EXPECT_EQ(stored.events[3].epoch().learning_rate(), 1e-8);
  const v1::HeadAblation& ablation = stored.events[4].head_ablation();
  EXPECT_THAT(ablation.correct(), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(ablation.missing(), ElementsAre(false, false, false, true));
  EXPECT_EQ(stored.events[0].started().execution().packing(), 1);
  EXPECT_EQ(ablation.parameters_json(), "{\"method\":\"zero\"}");
  EXPECT_EQ(stored.events[5].artifact().name(), "weights.safetensors");
  EXPECT_EQ(fleet_->Artifacts().at(stored.events[5].artifact().sha256()), "weights of job 1007");
  EXPECT_THAT(stored.log, HasSubstr("ok on cpu, visible [], told [so]"));

  // Nothing is kept of a job that has ended and is acknowledged.
  EXPECT_TRUE(fleet_->Await(
      [&] { return AttemptsEmpty() && !std::filesystem::exists(JobDir(assignment)); }));
  EXPECT_TRUE(fleet_->Await(
      [&] { return fleet_->Heartbeats() >= 2 && fleet_->LastHeartbeatHeld().empty(); }));
}

TEST_F(DaemonTest, SaysGoodbyeAndPreemptsOnSigterm) {
  StartBoth();
  const v1::Assignment assignment = MakeAssignment(1, "slow", 100000);
  fleet_->Assign(assignment);
  AwaitEpochs(1, 2);
  const absl::Time begin = absl::Now();
  worker_->Signal(SIGTERM);
  const auto exit = worker_->WaitFor(absl::Seconds(6));
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(exit->ok()) << exit->ToString();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  EXPECT_EQ(fleet_->Goodbyes(), 1);
  const auto finished = fleet_->Stored().at(1).finished();
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_FALSE(finished->never_started());
  EXPECT_TRUE(std::filesystem::exists(JobDir(assignment) + "/checkpoint"));
}

TEST_F(DaemonTest, EndsSoonWithAStubbornTrainerAndNoCoordinator) {
  StartBoth();
  const v1::Assignment assignment = MakeAssignment(1, "stubborn");
  fleet_->Assign(assignment);
  AwaitEpochs(1, 1);
  const int trainer = TrainerPid(assignment);
  ASSERT_TRUE(Alive(trainer));
  fleet_.reset();
  worker_->Signal(SIGTERM);
  EXPECT_TRUE(worker_->WaitFor(absl::Seconds(5)).has_value());
  EXPECT_FALSE(Alive(trainer));
}

TEST_F(DaemonTest, CancelIsQuickEvenForAStubbornTrainer) {
  StartBoth();
  fleet_->Assign(MakeAssignment(1, "stubborn"));
  fleet_->Assign(MakeAssignment(2, "slow", 100000, 1));
  AwaitEpochs(1, 1);
  AwaitEpochs(2, 1);
  const absl::Time begin = absl::Now();
  fleet_->Cancel(2);
  fleet_->Cancel(1);
  const auto gentle = fleet_->AwaitFinished(2);
  ASSERT_TRUE(gentle.has_value());
  EXPECT_EQ(gentle->outcome(), v1::ATTEMPT_OUTCOME_CANCELLED);
  const auto stubborn = fleet_->AwaitFinished(1);
  ASSERT_TRUE(stubborn.has_value());
  EXPECT_EQ(stubborn->outcome(), v1::ATTEMPT_OUTCOME_CANCELLED);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(3));
  // The slot is free again.
  fleet_->Assign(MakeAssignment(3, "plain"));
  EXPECT_EQ(fleet_->AwaitFinished(3)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
}

TEST_F(DaemonTest, ReportsHowTrainersFail) {
  StartBoth();
  const struct {
    const char* mode;
    v1::ErrorKind kind;
    const char* text;
  } cases[] = {
      {"killed", v1::ERROR_KIND_TRAINER_DIED, "ended by signal 9 (killed)"},
      {"silent", v1::ERROR_KIND_TRAINER_DIED, "exited with status 0 before it was done"},
      {"exit_3", v1::ERROR_KIND_TRAINER_DIED, "its last words: terminate called after throwing"},
      {"oom", v1::ERROR_KIND_OUT_OF_MEMORY, "no room for 3 GiB"},
      {"garbage", v1::ERROR_KIND_INTERNAL, "not a JSON object: Segmentation fault"},
      {"not_utf8", v1::ERROR_KIND_INTERNAL, "not a JSON object: half ?"},
      {"long_line", v1::ERROR_KIND_INTERNAL, "more than 1048576 bytes"},
      {"skips", v1::ERROR_KIND_INTERNAL, "reported epoch 2 of 3; expected 1"},
      {"too_late", v1::ERROR_KIND_INTERNAL, "allowed: at most 0"},
  };
  std::int64_t attempt_id = 0;
  for (const auto& expected : cases) {
    fleet_->Assign(MakeAssignment(++attempt_id, expected.mode));
    const auto finished = fleet_->AwaitFinished(attempt_id);
    ASSERT_TRUE(finished.has_value()) << expected.mode;
    EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_FAILED) << expected.mode;
    EXPECT_EQ(finished->error_kind(), expected.kind) << expected.mode;
    EXPECT_THAT(finished->error(), HasSubstr(expected.text));
    EXPECT_THAT(fleet_->Stored().at(attempt_id).log, HasSubstr(expected.text));
  }
}

TEST_F(DaemonTest, AnErrorIsCutBetweenCharacters) {
  StartBoth();
  fleet_->Assign(MakeAssignment(1, "long_error"));
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->error(), std::string(limits::kErrorBytes - 1, 'x') + "…");
}

TEST_F(DaemonTest, RefusesASlotThatItLacks) {
  StartBoth();
  fleet_->Assign(MakeAssignment(1, "plain", 3, 2));
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_FAILED);
  EXPECT_THAT(finished->error(), HasSubstr("no slot 2"));
}

TEST_F(DaemonTest, TrainingGoesOnWhileTheCoordinatorIsAway) {
  StartBoth();
  const v1::Assignment assignment = MakeAssignment(1, "slow", 100000);
  fleet_->Assign(assignment);
  AwaitEpochs(1, 3);
  const int trainer = TrainerPid(assignment);
  const auto stored = fleet_->Stored();
  fleet_.reset();
  // The trainer continues: its checkpoint advances although the daemon is gone.
  const auto checkpoint = [&] {
    int epoch = 0;
    std::ifstream(JobDir(assignment) + "/checkpoint") >> epoch;
    return epoch;
  };
  const int reached = static_cast<int>(stored.at(1).epochs().size());
  const absl::Time deadline = absl::Now() + kPatience;
  while (checkpoint() < reached + 10 && absl::Now() < deadline)
    absl::SleepFor(absl::Milliseconds(10));
  ASSERT_GE(checkpoint(), reached + 10);

  StartFleet();
  fleet_->Restore(stored);
  AwaitEpochs(1, reached + 12);
  const v1::Hello hello = fleet_->Hellos().at(0);
  ASSERT_EQ(hello.held_size(), 1);
  EXPECT_EQ(hello.held(0).attempt_id(), 1);
  EXPECT_EQ(hello.held(0).token(), assignment.token());
  EXPECT_EQ(hello.held(0).slot(), 0);
  const StoredAttempt attempt = fleet_->Stored().at(1);
  EXPECT_EQ(attempt.epochs(), UpTo(static_cast<int>(attempt.epochs().size())));
  EXPECT_FALSE(attempt.has_gap);
  EXPECT_TRUE(Alive(trainer));
}

TEST_F(DaemonTest, ResendsWhatWasNotAcknowledgedOnABrokenStream) {
  StartBoth();
  fleet_->SetAcknowledging(false);
  fleet_->Assign(MakeAssignment(1, "plain", 5));
  ASSERT_TRUE(fleet_->AwaitFinished(1).has_value());
  // The coordinator forgets the last three events, as if it had died before it committed them.
  auto stored = fleet_->Stored();
  stored.at(1).events.resize(stored.at(1).events.size() - 3);
  fleet_->Restore(stored);
  fleet_->SetAcknowledging(true);
  fleet_->Disconnect();
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(fleet_->Stored().at(1).epochs(), UpTo(5));
  EXPECT_FALSE(fleet_->Stored().at(1).has_gap);
  EXPECT_TRUE(fleet_->Await([&] { return AttemptsEmpty(); }));
}

TEST_F(DaemonTest, StopsAndForgetsWhatIsSuperseded) {
  StartBoth();
  const v1::Assignment by_ack = MakeAssignment(1, "slow", 100000);
  const v1::Assignment by_answer = MakeAssignment(2, "stubborn", 3, 1);
  fleet_->Assign(by_ack);
  fleet_->Assign(by_answer);
  AwaitEpochs(1, 1);
  AwaitEpochs(2, 1);
  const int first = TrainerPid(by_ack);
  const int second = TrainerPid(by_answer);
  fleet_->Supersede(1);
  EXPECT_TRUE(fleet_->Await([&] { return !Alive(first); }));
  fleet_->Supersede(2);
  fleet_->Disconnect();
  EXPECT_TRUE(fleet_->Await([&] { return !Alive(second) && AttemptsEmpty(); }));
  EXPECT_FALSE(fleet_->Stored().at(1).finished().has_value());
}

TEST_F(DaemonTest, KilledDaemonTakesItsTrainersAlongAndTheNextOneTellsOfThem) {
  StartBoth();
  const v1::Assignment running = MakeAssignment(1, "slow", 100000);
  const v1::Assignment stubborn = MakeAssignment(2, "stubborn", 3, 1);
  fleet_->Assign(running);
  fleet_->Assign(stubborn);
  AwaitEpochs(1, 3);
  AwaitEpochs(2, 1);
  const std::string worker_id = fleet_->Hellos().at(0).worker_id();
  const int first = TrainerPid(running);
  const int second = TrainerPid(stubborn);
  fleet_->SetAcknowledging(false);
  kill(worker_->pid(), SIGKILL);
  worker_->Wait();
  EXPECT_TRUE(fleet_->Await([&] { return !Alive(first) && !Alive(second); }));

  fleet_->SetAcknowledging(true);
  StartWorker();
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_THAT(finished->error(), HasSubstr("worker daemon ended without notice"));
  EXPECT_EQ(fleet_->AwaitFinished(2)->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  const v1::Hello hello = fleet_->Hellos().back();
  EXPECT_EQ(hello.worker_id(), worker_id);
  ASSERT_EQ(hello.held_size(), 2);
  EXPECT_EQ(hello.held(0).slot(), -1);
  const StoredAttempt stored = fleet_->Stored().at(1);
  EXPECT_FALSE(stored.has_gap);
  EXPECT_EQ(stored.epochs(), UpTo(static_cast<int>(stored.epochs().size())));

  // The job's next attempt continues from the checkpoint that the first one left.
  const int reached = static_cast<int>(stored.epochs().size());
  v1::Assignment again = running;
  again.set_attempt_id(3);
  again.set_spec_json(absl::StrCat("{\"mode\":\"slow\",\"epochs\":", reached + 5, "}"));
  again.set_max_start_epoch(reached + 2);
  fleet_->Assign(again);
  ASSERT_TRUE(fleet_->AwaitFinished(3).has_value());
  EXPECT_EQ(fleet_->AwaitFinished(3)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_GT(fleet_->Stored().at(3).events[0].started().start_epoch(), 0);
}

TEST_F(DaemonTest, TheNextDaemonEndsWhatTrainersOfAKilledOneLeftBehind) {
  StartBoth();
  const v1::Assignment assignment = MakeAssignment(1, "leaves_child");
  fleet_->Assign(assignment);
  AwaitEpochs(1, 3);
  const auto pid_in = [&](const std::string& name) {
    int pid = 0;
    std::ifstream(JobDir(assignment) + "/" + name) >> pid;
    return pid;
  };
  ASSERT_TRUE(
      fleet_->Await([&] { return Alive(pid_in("child")) && Alive(pid_in("grandparent")); }));
  const int trainer = TrainerPid(assignment);
  const int child = pid_in("child");
  const int other = pid_in("grandparent");
  kill(worker_->pid(), SIGKILL);
  worker_->Wait();
  EXPECT_TRUE(fleet_->Await([&] { return !Alive(trainer); }));
  EXPECT_TRUE(Alive(child)) << "nobody is left who would end it";
  StartWorker();
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Hellos().size() == 2; }));
  EXPECT_FALSE(Alive(child));
  EXPECT_FALSE(Alive(other));
}

TEST_F(DaemonTest, EndedAttemptsSurviveAKilledDaemon) {
  StartBoth();
  fleet_->SetAcknowledging(false);
  fleet_->Assign(MakeAssignment(1, "ok"));
  ASSERT_TRUE(fleet_->AwaitFinished(1).has_value());
  kill(worker_->pid(), SIGKILL);
  worker_->Wait();
  auto stored = fleet_->Stored();
  stored.at(1).events.resize(2);
  fleet_->Restore(stored);
  fleet_->SetAcknowledging(true);
  StartWorker();
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_THAT(fleet_->Stored().at(1).events, SizeIs(7));
  EXPECT_TRUE(fleet_->Await([&] { return AttemptsEmpty(); }));
}

TEST_F(DaemonTest, UploadGoesOnAfterAKilledDaemon) {
  StartBoth();
  fleet_->SetArtifactError(14);  // unavailable: worth trying again
  fleet_->Assign(MakeAssignment(1, "plain"));
  ASSERT_TRUE(
      fleet_->Await([&] { return std::filesystem::exists(dir_ / "w/attempts/1/upload.json"); }));
  kill(worker_->pid(), SIGKILL);
  worker_->Wait();
  fleet_->SetArtifactError(std::nullopt);
  StartWorker();
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_THAT(fleet_->Artifacts(), SizeIs(1));
}

TEST_F(DaemonTest, KeepsWeightsThatTheCoordinatorHasNoRoomFor) {
  StartBoth();
  fleet_->SetArtifactError(8);  // resource exhausted
  const v1::Assignment assignment = MakeAssignment(1, "plain");
  fleet_->Assign(assignment);
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  const StoredAttempt stored = fleet_->Stored().at(1);
  for (const v1::Event& event : stored.events) EXPECT_FALSE(event.has_artifact());
  const std::string kept = absl::StrCat(dir_ / "w", "/kept/", assignment.key(), ".",
                                        assignment.job_id(), "/weights.safetensors");
  EXPECT_TRUE(fleet_->Await([&] { return AttemptsEmpty(); }));
  EXPECT_EQ(ReadFile(kept, 1000).value_or(""), "weights of job 1001");
  EXPECT_THAT(fleet_->Stored().at(1).log,
              AllOf(HasSubstr("as the test wants it"), HasSubstr("weights.safetensors")));
}

TEST_F(DaemonTest, TheTrainerChoosesItsMicroBatchUnlessTheWorkerWasTold) {
  StartBoth();
  fleet_->Assign(MakeAssignment(1, "plain"));
  ASSERT_TRUE(fleet_->AwaitFinished(1).has_value());
  EXPECT_EQ(fleet_->Stored().at(1).events[0].started().execution().micro_batch(), 12);
}

TEST_F(DaemonTest, LaterAttemptsAreStartedAsTheFirst) {
  StartFleet();
  SpawnOptions options = WorkerOptions();
  options.argv.insert(options.argv.end(), {"--threads-per-slot", "2", "--micro-batch", "64"});
  worker_.emplace(*Process::Spawn(options));
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->connected(); }));
  fleet_->Assign(MakeAssignment(1, "plain"));
  ASSERT_TRUE(fleet_->AwaitFinished(1).has_value());
  const v1::Execution first = fleet_->Stored().at(1).events[0].started().execution();
  EXPECT_EQ(first.threads(), 2);
  EXPECT_EQ(first.micro_batch(), 64);
  v1::Assignment told = MakeAssignment(2, "plain");
  told.mutable_execution()->set_threads(1);
  told.mutable_execution()->set_micro_batch(16);
  told.mutable_execution()->set_packing(1);
  fleet_->Assign(told);
  EXPECT_EQ(fleet_->AwaitFinished(2)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  const v1::Execution second = fleet_->Stored().at(2).events[0].started().execution();
  EXPECT_EQ(second.threads(), 1);
  EXPECT_EQ(second.micro_batch(), 16);
  // A job that began in a batch on a GPU continues here too: on a CPU packing makes no difference.
  told = MakeAssignment(3, "plain");
  told.mutable_execution()->set_threads(1);
  told.mutable_execution()->set_packing(2);
  fleet_->Assign(told);
  EXPECT_EQ(fleet_->AwaitFinished(3)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_EQ(fleet_->Stored().at(3).events[0].started().execution().packing(), 2);
}

TEST_F(DaemonTest, HoldsTrainingBackOnlyWhileTheSpoolIsFull) {
  StartFleet();
  fleet_->SetAcknowledging(false);
  SpawnOptions options = WorkerOptions();
  options.argv.insert(options.argv.end(), {"--spool-quota", "20KiB"});
  worker_.emplace(*Process::Spawn(options));
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->connected(); }));
  constexpr int kEpochs = 5000;  // about 600 KB of events, far more than quota and pipe hold
  fleet_->Assign(MakeAssignment(1, "plain", kEpochs));
  // Stuck: the number of epochs stops growing well before the end.
  std::size_t last = 0;
  absl::Time since = absl::Now();
  const auto stuck = [&] {
    const std::size_t now = fleet_->Stored().at(1).epochs().size();
    if (now != last) since = absl::Now();
    last = now;
    return now > 0 && absl::Now() - since > absl::Milliseconds(600);
  };
  ASSERT_TRUE(fleet_->Await(stuck));
  EXPECT_LT(last, 1000u);
  fleet_->SetAcknowledging(true);
  fleet_->Disconnect();
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED) << finished->error();
  EXPECT_EQ(fleet_->Stored().at(1).epochs(), UpTo(kEpochs));
}

TEST_F(DaemonTest, DrainFinishLetsTrainersEndAndStays) {
  StartBoth();
  fleet_->Assign(MakeAssignment(1, "slow", 20));
  AwaitEpochs(1, 1);
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_mode(v1::Drain::FINISH);
  fleet_->Send(message);
  fleet_->Assign(MakeAssignment(2, "plain", 3, 1));  // crossed the drain request
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_EQ(fleet_->AwaitFinished(2)->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  message.mutable_drain()->set_mode(v1::Drain::RESUME);
  fleet_->Send(message);
  fleet_->Assign(MakeAssignment(3, "plain", 3, 1));
  EXPECT_EQ(fleet_->AwaitFinished(3)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_EQ(fleet_->Goodbyes(), 0);
}

TEST_F(DaemonTest, DrainCheckpointStopsTrainersWithTheirCheckpoints) {
  StartBoth();
  const v1::Assignment assignment = MakeAssignment(1, "slow", 100000);
  fleet_->Assign(assignment);
  AwaitEpochs(1, 1);
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_mode(v1::Drain::CHECKPOINT);
  fleet_->Send(message);
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_TRUE(std::filesystem::exists(JobDir(assignment) + "/checkpoint"));
}

TEST_F(DaemonTest, DrainKillDoesNotAskTwice) {
  StartBoth();
  fleet_->Assign(MakeAssignment(1, "stubborn", 100000));
  AwaitEpochs(1, 1);
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_mode(v1::Drain::KILL);
  const absl::Time before = absl::Now();
  fleet_->Send(message);
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_LT(absl::Now() - before, absl::Seconds(2));
}

TEST_F(DaemonTest, ConnectsAgainToASilentCoordinator) {
  StartFleet();
  fleet_->SetTimes(absl::Milliseconds(100), absl::Milliseconds(400));
  fleet_->SetAnsweringHeartbeats(false);
  StartWorker();
  EXPECT_TRUE(fleet_->Await([&] { return fleet_->Hellos().size() >= 2; }));
  // With answers the connection stays, far longer than a lease.
  fleet_->SetAnsweringHeartbeats(true);
  const int heartbeats = fleet_->Heartbeats();
  EXPECT_TRUE(fleet_->Await([&] { return fleet_->Heartbeats() >= heartbeats + 5; }));
  const std::size_t hellos = fleet_->Hellos().size();
  EXPECT_TRUE(fleet_->Await([&] { return fleet_->Heartbeats() >= heartbeats + 15; }));
  EXPECT_EQ(fleet_->Hellos().size(), hellos);
}

TEST_F(DaemonTest, EndsWhenItsParentDoes) {
  StartFleet();
  absl::StatusOr<Pipe> pipe = MakePipe();
  ASSERT_THAT(pipe, IsOk());
  SpawnOptions options = WorkerOptions();
  options.argv.insert(options.argv.end(), {"--parent-fd", "4"});
  options.fds = {{pipe->read.get(), 4}};
  worker_.emplace(*Process::Spawn(options));
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->connected(); }));
  pipe->write.Reset();
  const auto exit = worker_->WaitFor(absl::Seconds(5));
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(exit->ok());
  EXPECT_TRUE(fleet_->Await([&] { return fleet_->Goodbyes() == 1; }));
}

// Runs the worker to its end and returns its standard error.
std::string ErrorsOf(SpawnOptions options, ExitStatus* exit) {
  Pipe pipe = *MakePipe();
  options.fds.emplace_back(pipe.write.get(), 2);
  Process process = *Process::Spawn(options);
  pipe.write.Reset();
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(pipe.read.get(), buffer, sizeof buffer)) > 0) text.append(buffer, got);
  *exit = process.Wait();
  return text;
}

TEST_F(DaemonTest, TwoOnOneWorkDirectoryAreRefused) {
  StartBoth();
  ExitStatus exit;
  EXPECT_THAT(ErrorsOf(WorkerOptions(), &exit),
              AllOf(HasSubstr("is in use by another pelab-worker"), HasSubstr("--workdir")));
  EXPECT_EQ(exit.code, 1);
}

TEST_F(DaemonTest, SaysWhatIsWrongWithItsTrainer) {
  ExitStatus exit;
  SpawnOptions options = WorkerOptions();
  options.argv[8] = "/nowhere/pelab-trainer";
  EXPECT_THAT(ErrorsOf(options, &exit),
              HasSubstr("cannot run --trainer /nowhere/pelab-trainer: no such file"));
  EXPECT_EQ(exit.code, 1);
  options.argv[8] = "/bin/echo";
  EXPECT_THAT(ErrorsOf(options, &exit),
              HasSubstr("printed no JSON object of at most 64 levels but \"capabilities\""));
  EXPECT_EQ(exit.code, 1);
  options.argv[8] = "/bin/false";
  EXPECT_THAT(ErrorsOf(options, &exit), HasSubstr("exited with status 1"));
}

TEST_F(DaemonTest, ExplainsWrongFlags) {
  ExitStatus exit;
  SpawnOptions options = WorkerOptions();
  options.argv[2] = "nonsense";
  EXPECT_THAT(ErrorsOf(options, &exit), AllOf(HasSubstr("invalid address \"nonsense\""),
                                              HasSubstr("allowed: unix:PATH or HOST:PORT")));
  EXPECT_EQ(exit.code, 2);
  options = WorkerOptions();
  options.argv[2] = "example.org:7077";
  options.argv.insert(options.argv.end(), {"--token-file", dir_ / "missing"});
  EXPECT_THAT(ErrorsOf(options, &exit), HasSubstr("cannot open " + (dir_ / "missing")));
  options = WorkerOptions();
  options.argv.insert(options.argv.end(), {"--spool-quota", "lots"});
  EXPECT_THAT(ErrorsOf(options, &exit), HasSubstr("invalid --spool-quota \"lots\""));
  EXPECT_EQ(exit.code, 2);
}

}  // namespace
}  // namespace pelab::agent
