// A worker that ends by itself: when it is idle, and before its time is over.
#include <sys/stat.h>

#include "tests/unit/worker/agent/daemon_fixture.h"

namespace pelab::agent {
namespace {

using ::testing::HasSubstr;

class RetiringDaemonTest : public DaemonTest {
 protected:
  SpawnOptions With(const std::vector<std::string>& more) {
    SpawnOptions options = WorkerOptions();
    options.argv.insert(options.argv.end(), more.begin(), more.end());
    return options;
  }
  // Makes `squeue` a script that keeps its arguments and prints `says`.
  void FakeSqueue(const std::string& says, int status, SpawnOptions* options) {
    const std::string folder = dir_ / "bin";
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/squeue") << "#!/bin/sh\necho \"$*\" > " << (dir_ / "asked")
                                      << "\necho '" << says << "'\nexit " << status << "\n";
    ASSERT_EQ(chmod((folder + "/squeue").c_str(), 0755), 0);
    options->env = {{"PATH", folder + ":/usr/bin:/bin"}, {"SLURM_JOB_ID", "4711"}};
  }
  void ExpectEnds(v1::Goodbye::Reason reason) {
    const auto exit = worker_->WaitFor(kPatience);
    ASSERT_TRUE(exit.has_value());
    EXPECT_TRUE(exit->ok()) << exit->ToString();
    EXPECT_EQ(fleet_->Goodbyes(), 1);
    EXPECT_EQ(fleet_->LastGoodbye(), reason);
  }
};

// A daemon is idle until its first assignment comes, which takes a while on a busy host.
constexpr const char* kIdleExit = "2s";

TEST_F(RetiringDaemonTest, EndsAfterItWasIdle) {
  StartBothWith(With({"--idle-exit", kIdleExit}));
  EXPECT_EQ(fleet_->Hellos().at(0).available_until_ms(), 0);
  fleet_->Assign(MakeAssignment(1, "ok", 3));
  ASSERT_TRUE(fleet_->AwaitFinished(1).has_value());
  ExpectEnds(v1::Goodbye::IDLE);
}

TEST_F(RetiringDaemonTest, DoesNotEndWhileItWorks) {
  StartBothWith(With({"--idle-exit", kIdleExit}));
  fleet_->Assign(MakeAssignment(1, "slow", 100000));
  AwaitEpochs(1, 50);  // 50 ms each
  EXPECT_EQ(fleet_->Goodbyes(), 0);
  fleet_->Cancel(1);
  ExpectEnds(v1::Goodbye::IDLE);
}

TEST_F(RetiringDaemonTest, EndsWithoutACoordinator) {
  StartWorker(With({"--idle-exit", "300ms"}));
  const auto exit = worker_->WaitFor(kPatience);
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(exit->ok()) << exit->ToString();
}

TEST_F(RetiringDaemonTest, GivesItsJobsBackBeforeItsTimeIsOver) {
  const absl::Time begin = absl::Now();
  StartBothWith(With({"--time-limit", "3s", "--time-margin", "1s"}));
  const v1::Hello hello = fleet_->Hellos().at(0);
  EXPECT_GT(hello.available_until_ms(), absl::ToUnixMillis(begin + absl::Seconds(3)) - 1);
  EXPECT_LT(hello.available_until_ms(), absl::ToUnixMillis(absl::Now() + absl::Seconds(3)) + 1);
  EXPECT_EQ(hello.margin_ms(), 1000U);
  const v1::Assignment assignment = MakeAssignment(1, "slow", 100000);
  fleet_->Assign(assignment);
  ExpectEnds(v1::Goodbye::TIME_LIMIT);
  EXPECT_GE(absl::Now() - begin, absl::Seconds(2));
  const auto finished = fleet_->Stored().at(1).finished();
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_TRUE(std::filesystem::exists(JobDir(assignment) + "/checkpoint"));
}

TEST_F(RetiringDaemonTest, AsksSlurmForItsTime) {
  SpawnOptions options = With({"--time-limit", "slurm"});
  FakeSqueue("1-00:00:03", 0, &options);
  StartBothWith(options);
  const std::int64_t left =
      fleet_->Hellos().at(0).available_until_ms() - absl::ToUnixMillis(absl::Now());
  EXPECT_LE(left, absl::ToInt64Milliseconds(absl::Hours(24) + absl::Seconds(3)));
  EXPECT_GT(left, absl::ToInt64Milliseconds(absl::Hours(24) - absl::Minutes(1)));
  std::string asked;
  std::ifstream file(dir_ / "asked");
  std::getline(file, asked);
  EXPECT_EQ(asked, "-h -j 4711 -o %L");
}

TEST_F(RetiringDaemonTest, HasNoLimitIfSlurmCannotTell) {
  SpawnOptions options = With({"--time-limit", "slurm", "--idle-exit", "300ms"});
  const std::string errors = dir_ / "errors";
  std::vector<std::string> argv = {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2> " + errors};
  argv.insert(argv.end(), options.argv.begin(), options.argv.end());
  options.argv = std::move(argv);
  FakeSqueue("slurm_load_jobs error", 1, &options);
  StartBothWith(options);
  EXPECT_EQ(fleet_->Hellos().at(0).available_until_ms(), 0);
  ExpectEnds(v1::Goodbye::IDLE);
  EXPECT_THAT(ReadFile(errors, 1 << 20).value(),
              HasSubstr("the time that Slurm leaves is not known (squeue -j 4711 exited with "
                        "status 1"));
}

}  // namespace
}  // namespace pelab::agent
