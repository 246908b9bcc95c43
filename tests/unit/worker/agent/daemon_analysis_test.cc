// A worker that runs analyses on weights that the coordinator keeps.
#include "tests/unit/worker/agent/daemon_fixture.h"

namespace pelab::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class DaemonAnalysisTest : public DaemonTest {
 protected:
  v1::Assignment KeptAssignment(std::int64_t attempt_id, const std::string& mode = "ok") {
    v1::Assignment assignment = MakeAssignment(attempt_id, mode);
    assignment.set_max_start_epoch(3);
    assignment.mutable_execution()->set_threads(3);
    assignment.mutable_execution()->set_packing(1);
    assignment.mutable_weights()->set_sha256(Sha256Hex(kWeights));
    assignment.mutable_weights()->set_bytes(kWeights.size());
    return assignment;
  }
  std::string WeightsPath(std::int64_t attempt_id) {
    return absl::StrCat(dir_ / "w", "/attempts/", attempt_id, "/weights.safetensors");
  }
  const std::string kWeights = "the kept weights";
};

TEST_F(DaemonAnalysisTest, FetchesTheWeightsAndRunsOnlyTheAnalyses) {
  StartBoth();
  fleet_->KeepArtifact(kWeights);
  const v1::Assignment assignment = KeptAssignment(1);
  fleet_->Assign(assignment);
  const auto finished = fleet_->AwaitFinished(1);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED) << finished->error();
  const StoredAttempt stored = fleet_->Stored().at(1);
  ASSERT_THAT(stored.events, SizeIs(3));  // started, ablation, finished
  EXPECT_EQ(stored.events[0].started().start_epoch(), 3);
  EXPECT_THAT(stored.events[1].head_ablation().lost(), ElementsAre(899, 898, 897, 0));
  EXPECT_THAT(stored.log, HasSubstr("analyzes [the kept weights] with 3 threads"));
  EXPECT_TRUE(fleet_->Await(
      [&] { return AttemptsEmpty() && !std::filesystem::exists(JobDir(assignment)); }));
}

TEST_F(DaemonAnalysisTest, TriesAgainWhileTheCoordinatorIsBusy) {
  StartBoth();
  fleet_->KeepArtifact(kWeights);
  fleet_->SetArtifactError(8);  // resource exhausted: too many downloads at once
  fleet_->Assign(KeptAssignment(1));
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Downloads() >= 2; }));
  fleet_->SetArtifactError(14);
  const int downloads = fleet_->Downloads();
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Downloads() >= downloads + 2; }));
  fleet_->SetArtifactError(std::nullopt);
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
}

TEST_F(DaemonAnalysisTest, WeightsThatAreGoneOrWrongFailTheAttempt) {
  StartBoth();
  fleet_->Assign(KeptAssignment(1));
  const auto gone = fleet_->AwaitFinished(1);
  ASSERT_TRUE(gone.has_value());
  EXPECT_EQ(gone->outcome(), v1::ATTEMPT_OUTCOME_FAILED);
  EXPECT_EQ(gone->error_kind(), v1::ERROR_KIND_IO);
  EXPECT_THAT(gone->error(), HasSubstr("cannot fetch its kept weights: no such file"));
  fleet_->KeepArtifact(kWeights);
  std::int64_t attempt_id = 1;
  for (const std::string wrong : {"the kept weighty", "the", "the kept weights and more", ""}) {
    fleet_->SendInstead(wrong);
    fleet_->Assign(KeptAssignment(++attempt_id));
    const auto finished = fleet_->AwaitFinished(attempt_id);
    ASSERT_TRUE(finished.has_value()) << wrong;
    EXPECT_EQ(finished->outcome(), v1::ATTEMPT_OUTCOME_FAILED) << wrong;
    EXPECT_THAT(finished->error(), HasSubstr("that are not the 16 bytes with sha256")) << wrong;
    EXPECT_FALSE(std::filesystem::exists(WeightsPath(attempt_id))) << wrong;
  }
}

TEST_F(DaemonAnalysisTest, CancelEndsADownloadAndARunningAnalysis) {
  StartBoth();
  fleet_->KeepArtifact(kWeights);
  fleet_->SetArtifactError(14);
  fleet_->Assign(KeptAssignment(1, "slow"));
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Downloads() >= 1; }));
  fleet_->Cancel(1);
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_CANCELLED);
  fleet_->SetArtifactError(std::nullopt);
  fleet_->Assign(KeptAssignment(2, "slow"));
  ASSERT_TRUE(fleet_->Await([&] { return !fleet_->Stored().at(2).events.empty(); }));
  fleet_->Cancel(2);
  EXPECT_EQ(fleet_->AwaitFinished(2)->outcome(), v1::ATTEMPT_OUTCOME_CANCELLED);
}

TEST_F(DaemonAnalysisTest, AKilledDaemonGivesTheAnalysisBack) {
  StartBoth();
  fleet_->KeepArtifact(kWeights);
  const v1::Assignment assignment = KeptAssignment(1, "slow");
  fleet_->Assign(assignment);
  ASSERT_TRUE(fleet_->Await([&] { return !fleet_->Stored().at(1).events.empty(); }));
  const int trainer = TrainerPid(assignment);
  kill(worker_->pid(), SIGKILL);
  worker_->Wait();
  EXPECT_TRUE(fleet_->Await([&] { return !Alive(trainer); }));
  StartWorker();
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
}

}  // namespace
}  // namespace pelab::agent
