#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/render/json.h"
#include "core/rpc/lock_file.h"
#include "tests/support/fake_service.h"
#include "tests/unit/client/cli_fixture.h"

namespace pelab::client {
namespace {

using render::Json;
using ::testing::HasSubstr;

class RemoteTest : public ::testing::Test {
 protected:
  RemoteTest() {
    unsetenv("PELAB_SERVER");
    FillForTest(file_);
    service_ = std::make_unique<ServiceForTest>(file_.path(), file_.directory() + "/s");
    sweep_ = file_.directory() + "/ok.yaml";
    std::ofstream(sweep_) << "name: s\nprotocol: clean\npe: [nope]\ntask: distance\nseed: [0]\n";
  }
  CliResult Remote(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--server", service_->address()});
    return RunCli(std::move(arguments));
  }

  db::DatabaseForTest file_;
  std::unique_ptr<ServiceForTest> service_;
  std::string sweep_;
};

TEST_F(RemoteTest, TheSameAnswersWithAndWithoutACoordinator) {
  const std::vector<std::vector<std::string>> commands = {
      {"results", "quick", "--output", "json"},
      {"results", "--seeds"},
      {"curves", "quick", "--output", "json"},
      {"curves", "quick", "--output", "csv"},
      {"curves", "1"},
      {"curves", "4", "--output", "json"},
      {"ablation", "quick", "--output", "csv"},
      {"ablation", "2"},
      {"deposits", "quick", "--by-layer"},
      {"deposits", "1", "--output", "json"},
      {"analyses", "quick", "--output", "json"},
      {"analyses", "quick", "--name", "layer_ablation"},
      {"artifacts", "quick"},
      {"jobs", "quick", "--where", "seed>=1"},
      {"logs", "1"},
      {"results", "--output", "csv", "--group-by", "pe"}};
  for (auto command : commands) {
    const CliResult remote = Remote(command);
    command.insert(command.end(), {"--db", file_.path()});
    const CliResult local = RunCli(command);
    EXPECT_EQ(remote.code, 0) << remote.err;
    EXPECT_EQ(local.code, 0) << local.err;
    EXPECT_EQ(remote.out, local.out) << command.front();
    EXPECT_FALSE(remote.out.empty());
  }
}

// Curves are written page by page. An error follows the rows already written, and JSON remains one
// value.
TEST_F(RemoteTest, CurvesThatBreakOffSaySo) {
  service_->OnCurves([](int page) {
    return page < 2 ? absl::OkStatus() : absl::UnavailableError("shutting down");
  });
  const CliResult json = Remote({"curves", "quick", "--output", "json"});
  EXPECT_EQ(json.code, 4);
  const Json value = Json::parse(json.out);
  EXPECT_EQ(value["curves"].size(), 4u);
  EXPECT_EQ(value["error"]["code"], "unavailable");
  EXPECT_EQ(render::ToJson(value), json.out);

  service_->OnCurves([](int) { return absl::UnavailableError("shutting down"); });
  const CliResult none = Remote({"curves", "quick", "--output", "json"});
  EXPECT_EQ(none.code, 4);
  EXPECT_FALSE(Json::parse(none.out).contains("curves"));
  const CliResult csv = Remote({"curves", "quick", "--output", "csv"});
  EXPECT_EQ(csv.code, 4);
  EXPECT_EQ(csv.out, "");
  EXPECT_THAT(csv.err, HasSubstr("lost the coordinator"));
}

TEST_F(RemoteTest, JsonHasNoCurveWithoutItsJob) {
  service_->OnCurves([this](int page) {
    if (page > 0) return absl::OkStatus();
    const auto job = file_.AddJob({.key = "f00001"});  // added after the jobs were listed
    file_.AddToSweep(1, 4, job);
    file_.AddEpoch(file_.AddAttempt(job, 1, 0, "succeeded"), 0, 10);
    return absl::OkStatus();
  });
  const Json value = Json::parse(Remote({"curves", "quick", "--output", "json"}).out);
  EXPECT_EQ(value["jobs"].size(), 4u);
  EXPECT_EQ(value["curves"].size(), 6u);
  EXPECT_THAT(Remote({"curves", "quick", "--output", "csv"}).out, HasSubstr("\r\n5,0,"));
}

TEST_F(RemoteTest, TheLockFileNamesTheCoordinator) {
  auto lock = rpc::LockFile::Acquire(file_.path());
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_TRUE(lock->WriteAddress(service_->address()).ok());
  EXPECT_THAT(RunCli({"status", "--db", file_.path()}).out,
              HasSubstr("from the coordinator at " + service_->address()));
}

TEST_F(RemoteTest, ErrorsCrossTheWire) {
  const CliResult unknown = Remote({"results", "qiuck"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "pelab: no sweep \"qiuck\"; did you mean quick?\n");
  const CliResult refused = Remote({"submit", sweep_, "--priority", "-7"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, sweep_ + ":3:22: refused by the server\n");
}

TEST_F(RemoteTest, SubmitSendsEverything) {
  const CliResult result =
      Remote({"submit", sweep_, "--priority", "5", "--fresh", "--set", "train.epochs=3"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "sweep 1 priority 5 fresh train.epochs=3: 12 new, 0 already stored, 0 in flight, 0 "
            "failed earlier\n");
}

TEST_F(RemoteTest, AnalysesOfStoredJobsAreMentioned) {
  EXPECT_THAT(Remote({"submit", sweep_, "--priority", "6"}).out,
              HasSubstr("2 of the stored get analyses that they lack, without training"));
}

TEST_F(RemoteTest, AnalyzeAsksAndShowsTheAnswer) {
  const CliResult result = Remote({"analyze", "quick", "--analysis", "head_ablation", "--set",
                                   "head_ablation.method=mean", "--analysis", "layer_ablation"});
  EXPECT_EQ(result.code, 3) << "one job cannot have them";
  EXPECT_EQ(result.out,
            "head_ablation: mean ablation, test data, clean hygiene\n"
            "layer_ablation: zero ablation, test data\n"
            "sweep quick: 4 queued, 2 already stored, 1 not trained (failed or cancelled)\n");
  EXPECT_EQ(result.err, "pelab: job 4 failed: oom\\x1b[31m\n");
  const Json json =
      Json::parse(Remote({"analyze", "1", "--analysis", "layer_ablation", "--output", "json"}).out);
  EXPECT_EQ(json["queued"], 1);
  EXPECT_EQ(json["analyses"][0]["parameters"]["method"], "zero");
  EXPECT_EQ(json["reasons"][0], "job 4 failed: oom\x1b[31m");
}

TEST_F(RemoteTest, AnalyzeWatchesAndLooksWhatIsStored) {
  const CliResult result =
      Remote({"analyze", "quick", "--analysis", "layer_ablation", "--watch", "--output", "json"});
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(Json::parse(result.out)["lacking"].size(), 4u) << "what is stored has other parameters";
}

TEST_F(RemoteTest, ArtifactsCrossTheWire) {
  const std::string out = file_.directory() + "/got";
  const CliResult got =
      Remote({"artifacts", "2", "get", "weights.safetensors", "--out", out, "--output", "json"});
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(Json::parse(got.out)["file"], out);
  std::stringstream text;
  text << std::ifstream(out).rdbuf();
  EXPECT_EQ(text.str(), ArtifactForTest(2));
}

TEST_F(RemoteTest, AFileThatNeverEndsIsCutOff) {
  const auto pieces = service_->SendFilesWithoutEnd();
  const std::string out = file_.directory() + "/got";
  const CliResult got = Remote({"artifacts", "2", "get", "weights.safetensors", "--out", out});
  EXPECT_EQ(got.code, 1);
  EXPECT_THAT(got.err, HasSubstr("more than the"));
  EXPECT_FALSE(std::filesystem::exists(out));
  service_.reset();  // waits for the call's end
  EXPECT_LT(*pieces, 1'000) << "the call is cancelled, and not only ignored";
}

TEST_F(RemoteTest, WatchingEndsWithTheSweepsOutcome) {
  const CliResult result = Remote({"submit", sweep_, "--watch"});
  EXPECT_EQ(result.code, 3) << "one job of the stored sweep failed";
  EXPECT_THAT(result.out, HasSubstr("3 of 4 jobs succeeded, 1 failed"));
  const CliResult lines = Remote({"status", "1", "--watch", "--output", "json"});
  EXPECT_EQ(lines.code, 3);
  EXPECT_EQ(Json::parse(lines.out)["sweep"]["failed"], 1);
}

TEST_F(RemoteTest, ACoordinatorThatIsGoneIsSaid) {
  const std::string address = service_->address();
  service_.reset();
  const CliResult result = RunCli({"results", "--server", address});
  EXPECT_EQ(result.code, 4);
  EXPECT_EQ(result.err, "pelab: no coordinator at " + address + "\n");
}

}  // namespace
}  // namespace pelab::client
