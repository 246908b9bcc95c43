// Trainers that hang, leave something behind, or report wrong things.
#include <sys/stat.h>

#include <algorithm>

#include "tests/unit/worker/agent/daemon_fixture.h"

namespace pelab::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DaemonTroubleTest : public DaemonTest {
 protected:
  void StartBothWithTimeout(const std::string& timeout) {
    SpawnOptions options = WorkerOptions();
    options.argv.insert(options.argv.end(), {"--attempt-timeout", timeout});
    StartBothWith(options);
  }
  // The worker's standard error goes to a file.
  SpawnOptions LoggedOptions() {
    SpawnOptions options = WorkerOptions();
    options.argv = {"/bin/sh", "-c", absl::StrCat("exec \"$@\" 2>", dir_ / "worker.log"), "sh"};
    const SpawnOptions plain = WorkerOptions();
    options.argv.insert(options.argv.end(), plain.argv.begin(), plain.argv.end());
    return options;
  }
  static int PidIn(const std::string& path) {
    int pid = 0;
    std::ifstream(path) >> pid;
    return pid;
  }
  static int Permissions(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 ? static_cast<int>(info.st_mode & 0777) : -1;
  }
};

TEST_F(DaemonTroubleTest, ATrainerThatSaysNothingIsStoppedAndItsSlotIsFree) {
  StartBothWithTimeout("5s");  // longer than a busy machine needs for its first line
  fleet_->Assign(MakeAssignment(1, "hangs_at_once"));
  fleet_->Assign(MakeAssignment(2, "hangs_after_epoch", 3, 1));
  const auto at_once = fleet_->AwaitFinished(1);
  ASSERT_TRUE(at_once.has_value());
  EXPECT_EQ(at_once->outcome(), v1::ATTEMPT_OUTCOME_FAILED);
  EXPECT_EQ(at_once->error_kind(), v1::ERROR_KIND_STALLED);
  EXPECT_THAT(at_once->error(),
              AllOf(HasSubstr("said nothing for"), HasSubstr("not even its hello"),
                    HasSubstr("stopped by --attempt-timeout")));
  const auto between = fleet_->AwaitFinished(2);
  ASSERT_TRUE(between.has_value());
  EXPECT_EQ(between->error_kind(), v1::ERROR_KIND_STALLED);
  EXPECT_THAT(between->error(), HasSubstr("its longest epoch took"));
  fleet_->Assign(MakeAssignment(3, "plain"));
  EXPECT_EQ(fleet_->AwaitFinished(3)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
}

TEST_F(DaemonTroubleTest, ATrainerThatClosesItsOutputAndLivesOnIsStopped) {
  StartBothWithTimeout("off");
  fleet_->Assign(MakeAssignment(1, "closes_stdout"));
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->error_kind(), v1::ERROR_KIND_STALLED);
  EXPECT_THAT(finished->error(), HasSubstr("closed its standard output"));
}

TEST_F(DaemonTroubleTest, CapabilitiesThatAreNestedAreRefused) {
  const std::string trainer = dir_ / "nested";
  std::ofstream(trainer) << "#!/bin/sh\nhead -c 200000 /dev/zero | tr '\\0' '['\n";
  ASSERT_EQ(chmod(trainer.c_str(), 0755), 0);
  SpawnOptions options = LoggedOptions();
  const auto double_of_tests = std::find(options.argv.begin(), options.argv.end(), "--trainer") + 1;
  ASSERT_LT(double_of_tests, options.argv.end());
  *double_of_tests = trainer;
  StartWorker(options);
  const ExitStatus exit = worker_->Wait();
  EXPECT_FALSE(exit.signaled);
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(*ReadFile(dir_ / "worker.log", 1 << 20),
              HasSubstr("printed no JSON object of at most 64 levels but \"[["));
}

TEST_F(DaemonTroubleTest, SigtermByHandIsNotTheWorkersDoing) {
  StartBoth();
  const v1::Assignment assignment = MakeAssignment(1, "slow", 100000);
  fleet_->Assign(assignment);
  AwaitEpochs(1, 2);
  ASSERT_EQ(kill(TrainerPid(assignment), SIGTERM), 0);
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_EQ(finished->error_kind(), v1::ERROR_KIND_TRAINER_DIED);
}

TEST_F(DaemonTroubleTest, WhatATrainerLeavesBehindEndsWithIt) {
  StartBoth();
  const v1::Assignment first = MakeAssignment(1, "leaves_child");
  const v1::Assignment second = MakeAssignment(2, "leaves_child", 3, 1);
  fleet_->Assign(first);
  fleet_->Assign(second);
  AwaitEpochs(1, 3);
  AwaitEpochs(2, 3);
  const auto child = [&](const v1::Assignment& of) { return PidIn(JobDir(of) + "/child"); };
  const auto other = [&](const v1::Assignment& of) { return PidIn(JobDir(of) + "/grandparent"); };
  ASSERT_TRUE(fleet_->Await([&] {
    return Alive(child(first)) && Alive(child(second)) && Alive(other(first)) &&
           Alive(other(second));
  }));
  const int first_child = child(first);
  const int first_other = other(first);
  const int second_child = child(second);
  std::ofstream(JobDir(first) + "/go_on") << "now";
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_FALSE(Alive(first_child));
  EXPECT_FALSE(Alive(first_other));
  EXPECT_TRUE(Alive(second_child)) << "it is another trainer's";
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat("/proc/", first_child))) << "and it is reaped";
  std::ofstream(JobDir(second) + "/go_on") << "now";
  EXPECT_EQ(fleet_->AwaitFinished(2)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_FALSE(Alive(second_child));
}

TEST_F(DaemonTroubleTest, WhatItLeavesBehindEndsWithTheNextDaemonIfTheFirstIsKilled) {
  StartBoth();
  const v1::Assignment assignment = MakeAssignment(1, "leaves_child");
  fleet_->Assign(assignment);
  AwaitEpochs(1, 3);
  const std::string child_file = JobDir(assignment) + "/child";
  const std::string other_file = JobDir(assignment) + "/grandparent";
  ASSERT_TRUE(fleet_->Await([&] { return Alive(PidIn(child_file)) && Alive(PidIn(other_file)); }));
  const int trainer = TrainerPid(assignment);
  const int child = PidIn(child_file);
  const int other = PidIn(other_file);
  kill(worker_->pid(), SIGKILL);
  worker_->Wait();
  EXPECT_TRUE(fleet_->Await([&] { return !Alive(trainer); }));
  EXPECT_TRUE(Alive(child)) << "nobody is left who would end it";
  StartWorker();
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Hellos().size() == 2; }));
  EXPECT_FALSE(Alive(child));
  EXPECT_FALSE(Alive(other));
}

TEST_F(DaemonTroubleTest, ASuccessWithoutItsWeightsSaysSo) {
  StartBoth();
  const struct {
    const char* mode;
    const char* text;
  } cases[] = {{"weights_missing", "nothing.here: no such file"},
               {"weights_fifo", "pipe: it is not a regular file"},
               {"weights_wrong", "the file is not what its header says"}};
  std::int64_t attempt_id = 0;
  for (const auto& expected : cases) {
    fleet_->Assign(MakeAssignment(++attempt_id, expected.mode));
    const auto finished = fleet_->AwaitFinished(attempt_id);
    ASSERT_TRUE(finished.has_value()) << expected.mode;
    EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED) << expected.mode;
    EXPECT_THAT(finished->warning(),
                AllOf(HasSubstr("the weights could not be uploaded"), HasSubstr(expected.text)));
  }
  fleet_->Assign(MakeAssignment(++attempt_id, "plain"));
  EXPECT_THAT(fleet_->AwaitFinished(attempt_id)->warning(), IsEmpty());
}

TEST_F(DaemonTroubleTest, APipeInPlaceOfAnAnalysisIsAnError) {
  StartBoth();
  fleet_->Assign(MakeAssignment(1, "analysis_fifo"));
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_THAT(finished->error(), HasSubstr("it is not a regular file"));
}

TEST_F(DaemonTroubleTest, TrainersDoNotGetTheToken) {
  SpawnOptions options = WorkerOptions();
  options.env.emplace_back("PELAB_TOKEN", "a-token-that-is-long-enough-to-be-one");
  StartBothWith(options);
  fleet_->Assign(MakeAssignment(1, "plain"));
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_TRUE(fleet_->Await(
      [&] { return fleet_->Stored().at(1).log.find("token [unset]") != std::string::npos; }));
}

TEST_F(DaemonTroubleTest, TokensAndIdentityAreReadableByNobodyElse) {
  StartBoth();
  fleet_->Assign(MakeAssignment(1, "slow", 100000));
  AwaitEpochs(1, 1);
  EXPECT_EQ(Permissions(dir_ / "w"), 0700);
  EXPECT_EQ(Permissions(dir_ / "w/attempts"), 0700);
  for (const char* file : {"w/worker_id", "w/lock", "w/attempts/1/attempt.json",
                           "w/attempts/1/job.json", "w/attempts/1/spool"}) {
    EXPECT_EQ(Permissions(dir_ / file), 0600) << file;
  }
}

TEST_F(DaemonTroubleTest, EventsThatNobodyKnowsDoNotFillTheLog) {
  StartBothWith(LoggedOptions());
  fleet_->Assign(MakeAssignment(1, "chatters"));
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  const auto log = ReadFile(dir_ / "worker.log", 10 << 20);
  ASSERT_THAT(log, IsOk());
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = log->find("weather_", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 3u);
  EXPECT_THAT(*log, HasSubstr("further ones of this attempt are not logged"));
}

TEST_F(DaemonTroubleTest, AWorkerHasAName) {
  SpawnOptions options = WorkerOptions();
  options.argv.insert(options.argv.end(), {"--name", "left-rack"});
  StartBothWith(options);
  EXPECT_EQ(fleet_->Hellos().at(0).name(), "left-rack");
  worker_->Signal(SIGTERM);
  ASSERT_TRUE(worker_->WaitFor(kPatience).has_value());
  StartWorker();
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Hellos().size() == 2; }));
  EXPECT_EQ(fleet_->Hellos().at(1).name(), fleet_->Hellos().at(1).host());
}

}  // namespace
}  // namespace pelab::agent
