// A worker that fetches the files that its assignments name.
#include "tests/unit/worker/agent/daemon_fixture.h"

namespace pelab::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DaemonFilesTest : public DaemonTest {
 protected:
  v1::Assignment OwnAssignment(std::int64_t attempt_id, const std::string& mode = "plain") {
    v1::Assignment assignment = MakeAssignment(attempt_id, mode);
    assignment.set_pe("own");
    v1::NeededFile& file = *assignment.add_files();
    file.set_sha256(Sha256Hex(kEncoding));
    file.set_bytes(kEncoding.size());
    return assignment;
  }
  v1::Finished Run(const v1::Assignment& assignment) {
    fleet_->Assign(assignment);
    const auto finished = fleet_->AwaitFinished(assignment.attempt_id());
    EXPECT_TRUE(finished.has_value());
    return finished.value_or(v1::Finished());
  }
  void ExpectTrained(const v1::Assignment& assignment) {
    const v1::Finished finished = Run(assignment);
    EXPECT_EQ(finished.outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED) << finished.error();
  }
  void ExpectLacking(const v1::Finished& finished) {
    EXPECT_EQ(finished.outcome(), v1::ATTEMPT_OUTCOME_FAILED);
    EXPECT_EQ(finished.error_kind(), v1::ERROR_KIND_IO);
    EXPECT_EQ(finished.error(), absl::StrCat("the coordinator has no file ", Sha256Hex(kEncoding),
                                             " that the job needs; submit the sweep again"));
  }
  std::string CachedPath() { return dir_ / "w/files/" + Sha256Hex(kEncoding); }
  void RestartWorker(const SpawnOptions& options) {
    kill(worker_->pid(), SIGTERM);
    worker_->Wait();
    const std::size_t hellos = fleet_->Hellos().size();
    StartWorker(options);
    ASSERT_TRUE(fleet_->Await([&] { return fleet_->Hellos().size() > hellos; }));
    ASSERT_TRUE(fleet_->Await([&] { return fleet_->connected(); }));
  }

  const std::string kEncoding = "the code of an encoding";
};

TEST_F(DaemonFilesTest, AreFetchedOnceForAllAttempts) {
  StartBoth();
  fleet_->KeepArtifact(kEncoding);
  ExpectTrained(OwnAssignment(1));
  EXPECT_EQ(*ReadFile(CachedPath(), 1000), kEncoding);
  ASSERT_TRUE(fleet_->Await(
      [&] { return fleet_->Stored().at(1).log.find("--files ") != std::string::npos; }));
  EXPECT_THAT(fleet_->Stored().at(1).log, HasSubstr("/w/files"));
  EXPECT_EQ(fleet_->Downloads(), 1);
  ExpectTrained(OwnAssignment(2));
  RestartWorker(WorkerOptions());
  ExpectTrained(OwnAssignment(3));
  EXPECT_EQ(fleet_->Downloads(), 1);
  ExpectTrained(MakeAssignment(4, "plain"));
  ASSERT_TRUE(fleet_->Await([&] { return !fleet_->Stored().at(4).log.empty(); }));
  EXPECT_THAT(fleet_->Stored().at(4).log, Not(HasSubstr("--files")));
}

TEST_F(DaemonFilesTest, AttemptsAtOnceDoNotDisturbEachOther) {
  StartBoth();
  fleet_->SetArtifactError(14);
  for (std::int64_t id = 1; id <= 2; ++id) {
    v1::Assignment assignment = OwnAssignment(id);
    assignment.set_slot(static_cast<int>(id - 1));
    fleet_->Assign(assignment);
  }
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Downloads() >= 4; })) << "they try again";
  fleet_->KeepArtifact(kEncoding);
  fleet_->SetArtifactError(std::nullopt);
  for (std::int64_t id = 1; id <= 2; ++id) {
    EXPECT_EQ(fleet_->AwaitFinished(id)->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  }
  EXPECT_EQ(*ReadFile(CachedPath(), 1000), kEncoding);
}

TEST_F(DaemonFilesTest, ADamagedFileIsFetchedAgain) {
  std::filesystem::create_directories(dir_ / "w/files");
  std::ofstream(CachedPath()) << "the code of another one";
  StartBoth();
  fleet_->KeepArtifact(kEncoding);
  ExpectTrained(OwnAssignment(1));
  EXPECT_EQ(fleet_->Downloads(), 1);
  EXPECT_EQ(*ReadFile(CachedPath(), 1000), kEncoding);
}

TEST_F(DaemonFilesTest, OneThatTheCoordinatorLacksFailsTheAttempt) {
  StartBoth();
  ExpectLacking(Run(OwnAssignment(1)));
  EXPECT_EQ(fleet_->Downloads(), 1);
  v1::Assignment unknown = OwnAssignment(2);
  unknown.mutable_files(0)->clear_bytes();
  ExpectLacking(Run(unknown));
  EXPECT_EQ(fleet_->Downloads(), 1) << "it says so itself";
  fleet_->KeepArtifact(kEncoding);
  fleet_->SendInstead("the code of another one");
  EXPECT_THAT(Run(OwnAssignment(3)).error(),
              AllOf(HasSubstr("cannot fetch a file that the job needs: "),
                    HasSubstr("that are not the 23 bytes with sha256")));
  EXPECT_FALSE(std::filesystem::exists(CachedPath()));
}

TEST_F(DaemonFilesTest, CancelEndsADownload) {
  StartBoth();
  fleet_->SetArtifactError(14);
  fleet_->Assign(OwnAssignment(1, "slow"));
  ASSERT_TRUE(fleet_->Await([&] { return fleet_->Downloads() >= 1; }));
  fleet_->Cancel(1);
  EXPECT_EQ(fleet_->AwaitFinished(1)->outcome(), v1::ATTEMPT_OUTCOME_CANCELLED);
}

TEST_F(DaemonFilesTest, OffMeansThatNoSuchJobIsTaken) {
  SpawnOptions options = WorkerOptions();
  options.env = {
      {"PELAB_DOUBLE_PES", R"(,"pes":[{"name":"own","version":1},{"name":"rope","version":1}])"}};
  StartBothWith(options);
  EXPECT_THAT(fleet_->Hellos().back().capabilities_json(), HasSubstr(R"({"name":"own")"));
  options.argv.insert(options.argv.end(), {"--own-encodings", "off"});
  RestartWorker(options);
  EXPECT_THAT(fleet_->Hellos().back().capabilities_json(),
              AllOf(HasSubstr(R"("name":"rope")"), Not(HasSubstr("own"))));
  fleet_->KeepArtifact(kEncoding);
  EXPECT_THAT(Run(OwnAssignment(1)).error(), HasSubstr("(--own-encodings off)"));
  v1::Assignment of_data = OwnAssignment(2);
  of_data.set_pe("rope");
  ExpectTrained(of_data);
}

}  // namespace
}  // namespace pelab::agent
