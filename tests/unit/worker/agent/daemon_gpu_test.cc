// A worker on a host whose driver reports GPUs; the trainers are scripts.
#include "tests/unit/worker/agent/daemon_fixture.h"

namespace pelab::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

class DaemonGpuTest : public DaemonTest {
 protected:
  ~DaemonGpuTest() override {
    int pid = 0;
    if (std::ifstream(dir_ / "w/mps/pipe/pid") >> pid) kill(pid, SIGKILL);
  }
  // With nvidia-cuda-mps-control in PATH.
  SpawnOptions MpsWorkerOptions() {
    SpawnOptions options = GpuWorkerOptions();
    const std::string bin = dir_ / "bin";
    std::filesystem::create_directories(bin);
    std::filesystem::copy_file(
        absl::StrCat(PELAB_SOURCE_DIR, "/tests/support/mps_control_double.sh"),
        bin + "/nvidia-cuda-mps-control", std::filesystem::copy_options::overwrite_existing);
    options.env.emplace_back("PATH", absl::StrCat(bin, ":", getenv("PATH")));
    options.argv.insert(options.argv.end(), {"--slots-per-device", "2"});
    return options;
  }
  std::string LogOfAJob(std::int64_t attempt_id) {
    fleet_->Assign(MakeAssignment(attempt_id, "plain"));
    EXPECT_EQ(fleet_->AwaitFinished(attempt_id)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
    return fleet_->Stored().at(attempt_id).log;
  }
  // In millijoules.
  void SetEnergyOfFirstGpu(const std::string& text) { std::ofstream(dir_ / "energy") << text; }
  std::optional<double> JoulesOf(std::int64_t attempt_id) {
    const auto finished = fleet_->AwaitFinished(attempt_id);
    if (!finished.has_value() || !finished->has_energy_joules()) return std::nullopt;
    return finished->energy_joules();
  }
  void EndWorker() {
    worker_->Signal(SIGTERM);
    EXPECT_TRUE(worker_->Wait().ok());
  }
};

TEST_F(DaemonGpuTest, ASlotOfAGpuTakesEightJobs) {
  StartBothWith(GpuWorkerOptions());
  const v1::Hello hello = fleet_->Hellos().at(0);
  ASSERT_EQ(hello.slots_size(), 2);
  EXPECT_EQ(hello.slots(0).device(), "cuda:0");
  EXPECT_EQ(hello.slots(0).pack(), 8);
  EXPECT_THAT(LogOfAJob(1), AllOf(HasSubstr("visible [GPU-11111111-0000]"),
                                  HasSubstr("memory [unset], MPS [unset]")));
}

TEST_F(DaemonGpuTest, ABatchIsReportedAndGoesOnAsOne) {
  StartBothWith(GpuWorkerOptions());
  const auto packing = [&](std::int64_t id) {
    EXPECT_EQ(fleet_->AwaitFinished(id)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED) << id;
    return fleet_->Stored().at(id).events.at(0).started().execution().packing();
  };
  fleet_->AssignPack(
      {MakeAssignment(1, "plain"), MakeAssignment(2, "plain"), MakeAssignment(3, "plain")});
  for (const std::int64_t id : {1, 2, 3}) EXPECT_EQ(packing(id), 3);
  v1::Assignment again = MakeAssignment(4, "plain");
  again.mutable_execution()->set_threads(1);
  again.mutable_execution()->set_packing(3);
  fleet_->Assign(again);
  EXPECT_EQ(packing(4), 3) << "also by itself";
  // A trainer with other settings cannot continue the job.
  again = MakeAssignment(5, "alone");
  again.mutable_execution()->set_threads(1);
  again.mutable_execution()->set_packing(3);
  fleet_->Assign(again);
  const auto refused = fleet_->AwaitFinished(5);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->outcome(), v1::ATTEMPT_OUTCOME_FAILED);
  EXPECT_THAT(refused->error(), HasSubstr("packing 1; the job began with 1, 0 and 3"));
}

TEST_F(DaemonGpuTest, AnEndHasTheEnergyThatTheAttemptUsed) {
  SpawnOptions options = GpuWorkerOptions();
  options.env.emplace_back("PELAB_FAKE_ENERGY", dir_ / "energy");
  SetEnergyOfFirstGpu("1000");
  StartBothWith(options);
  fleet_->AssignPack({MakeAssignment(1, "slow", 100000), MakeAssignment(2, "slow", 100000)});
  AwaitEpochs(1, 1);
  AwaitEpochs(2, 1);
  SetEnergyOfFirstGpu("7000");
  fleet_->Cancel(1);
  EXPECT_THAT(JoulesOf(1), Optional(3.0)) << "half of what the GPU used";
  SetEnergyOfFirstGpu("9500");
  fleet_->Cancel(2);
  EXPECT_THAT(JoulesOf(2), Optional(5.5)) << "and then all of it";
  fleet_->Assign(MakeAssignment(3, "plain"));
  EXPECT_THAT(JoulesOf(3), Optional(0.0));
  fleet_->Assign(MakeAssignment(4, "plain", 3, /*slot=*/1));
  EXPECT_EQ(JoulesOf(4), std::nullopt) << "the second GPU does not report it";
  SetEnergyOfFirstGpu("unknown");
  fleet_->Assign(MakeAssignment(5, "plain"));
  EXPECT_EQ(JoulesOf(5), std::nullopt);
  EXPECT_EQ(fleet_->Stored().at(5).finished()->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
}

TEST_F(DaemonGpuTest, AWorkerWithABrokenGpuGivesItsJobsBackAndTakesNoMore) {
  SpawnOptions options = GpuWorkerOptions();
  options.env.emplace_back("PELAB_FAKE_XIDS", dir_ / "xids");
  StartBothWith(options);
  fleet_->Assign(MakeAssignment(1, "slow"));
  AwaitEpochs(1, 1);
  std::ofstream(dir_ / "xids") << "13 79";
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_TRUE(
      fleet_->Await([&] { return fleet_->LastHeartbeatUnfit() == "GPU cuda:1 has Xid 79"; }));
  fleet_->Assign(MakeAssignment(2, "plain"));
  EXPECT_EQ(fleet_->AwaitFinished(2)->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  // A person lets it take jobs again.
  v1::CoordinatorMessage resume;
  resume.mutable_drain()->set_mode(v1::Drain::RESUME);
  fleet_->Send(resume);
  EXPECT_TRUE(fleet_->Await([&] { return fleet_->LastHeartbeatUnfit().empty(); }));
  fleet_->Assign(MakeAssignment(3, "plain"));
  EXPECT_EQ(fleet_->AwaitFinished(3)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EndWorker();
}

TEST_F(DaemonGpuTest, TrainersThatShareAGpuHaveTheirPartOfItAndMps) {
  StartBothWith(MpsWorkerOptions());
  const v1::Hello hello = fleet_->Hellos().at(0);
  ASSERT_EQ(hello.slots_size(), 4);
  EXPECT_EQ(hello.slots(1).memory_bytes(), 500u);
  EXPECT_THAT(LogOfAJob(1),
              HasSubstr(absl::StrCat("memory [500], MPS [", dir_ / "w/mps/pipe", "]")));
  int daemon = 0;
  std::ifstream(dir_ / "w/mps/pipe/pid") >> daemon;
  EXPECT_TRUE(Alive(daemon));
  EndWorker();
  EXPECT_TRUE(fleet_->Await([&] { return !Alive(daemon); }));
}

TEST_F(DaemonGpuTest, TrainersDoWithoutMpsWhereItIsOffOrDoesNotStart) {
  SpawnOptions off = MpsWorkerOptions();
  off.argv.insert(off.argv.end(), {"--mps", "off"});
  StartBothWith(off);
  EXPECT_THAT(LogOfAJob(1), HasSubstr("memory [500], MPS [unset]"));
  EndWorker();
  SpawnOptions fails = MpsWorkerOptions();
  fails.env.emplace_back("PELAB_MPS_DOUBLE", "fails");
  StartWorker(fails);
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Hellos().size() == 2 && fleet_->connected(); }));
  EXPECT_THAT(LogOfAJob(2), HasSubstr("MPS [unset]"));
  EndWorker();
  // No GPU is shared, so MPS would be of no use.
  SpawnOptions single = MpsWorkerOptions();
  single.argv.insert(single.argv.end(), {"--slots-per-device", "1"});
  single.argv.erase(single.argv.end() - 4, single.argv.end() - 2);
  StartWorker(single);
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Hellos().size() == 3 && fleet_->connected(); }));
  EXPECT_THAT(LogOfAJob(3), HasSubstr("memory [unset], MPS [unset]"));
}

}  // namespace
}  // namespace pelab::agent
