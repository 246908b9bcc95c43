#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/build_info.h"
#include "core/render/json.h"
#include "core/results/rows.h"
#include "tests/unit/client/cli_fixture.h"

namespace pelab::client {
namespace {

using render::Json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    unsetenv("PELAB_SERVER");
    FillForTest(file_);
  }
  CliResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--db", file_.path()});
    return RunCli(std::move(arguments));
  }
  Json RunJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--output", "json"});
    const CliResult result = Run(std::move(arguments));
    EXPECT_EQ(result.err, "");
    Json json = Json::parse(result.out, nullptr, false);  // parsing fails if there is more than one
                                                          // value
    EXPECT_FALSE(json.is_discarded()) << result.out;
    return json;
  }

  // For commands that report on standard error what they do.
  Json RunJsonIgnoringErrors(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--output", "json"});
    return Json::parse(Run(std::move(arguments)).out, nullptr, false);
  }

  db::DatabaseForTest file_;
};

TEST_F(CliTest, ResultsTableMarksWhatIsIncomplete) {
  const CliResult result = Run({"results", "quick"});
  EXPECT_EQ(result.code, 0);
  // The half width of nope's interval: t(0.975, 1) * (7 / 300) / 2.
  EXPECT_EQ(result.out,
            "pe    task      test_accuracy  95% interval    n  seeds\n"
            "nope  distance         0.3483       ±0.1482  2/2  0.3367 0.3600\n"
            "rope  distance        ~0.3833             -  1/2  1 failed\n"
            "~ not every seed of this group has a result\n");
}

TEST_F(CliTest, ResultsJsonIsExact) {
  const Json json = RunJson({"results", "quick"});
  ASSERT_EQ(json["jobs"].size(), 4u);
  SQLite::Statement sql(
      file_.db(), "SELECT test_accuracy, test_correct, test_total FROM v_jobs ORDER BY job_id");
  for (const Json& job : json["jobs"]) {
    ASSERT_TRUE(sql.executeStep());
    if (sql.getColumn(0).isNull()) {
      EXPECT_TRUE(job["test_accuracy"].is_null());
      continue;
    }
    EXPECT_EQ(std::bit_cast<std::uint64_t>(job["test_accuracy"].get<double>()),
              std::bit_cast<std::uint64_t>(sql.getColumn(0).getDouble()));
    EXPECT_EQ(job["test_correct"], sql.getColumn(1).getInt64());
    EXPECT_EQ(job["test_total"], sql.getColumn(2).getInt64());
  }
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["groups"][0]["n"], 2);
  EXPECT_EQ(json["groups"][1]["failed"], 1);
}

TEST_F(CliTest, ResultsFiltersAndSeeds) {
  EXPECT_EQ(RunJson({"results", "--where", "pe=nope,seed=1"})["jobs"].size(), 1u);
  const CliResult seeds = Run({"results", "--seeds", "--where", "pe=nope"});
  EXPECT_THAT(seeds.out, HasSubstr("101/300"));
  const CliResult unknown = Run({"results", "--group-by", "nonsense", "--output", "csv"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("nonsense"));
  const CliResult csv = Run({"results", "--seeds", "--output", "csv"});
  EXPECT_THAT(csv.out, HasSubstr(",0.33666666666666667,"));
  EXPECT_THAT(csv.out, HasSubstr("job_id,key,generation,pe,pe_label,task"));
}

TEST_F(CliTest, CurvesAndAblationsAreWhole) {
  const Json curves = RunJson({"curves", "quick"});
  EXPECT_EQ(curves["curves"].size(), 6u);
  EXPECT_EQ(curves["curves"][0]["train_loss"].get<double>(), 1.0 / 3);
  for (const char* target : {"quick", "1", "4"}) {  // job 4 has no epoch
    const CliResult json = Run({"curves", target, "--output", "json"});
    EXPECT_EQ(json.out, render::ToJson(Json::parse(json.out))) << "as one value is written";
    const CliResult csv = Run({"curves", target, "--output", "csv"});
    EXPECT_EQ(csv.out,
              render::ToCsv(results::ColumnsOf<v1::CurveRow>(), Json::parse(json.out)["curves"]));
  }
  const Json heads = RunJson({"ablation", "1"});
  EXPECT_EQ(heads["head_ablation"].size(), 6u);
  EXPECT_EQ(heads["means"][0]["by_index"]["drops"][1][1].get<double>(), 11.0 / 300);
  EXPECT_EQ(heads["head_ablation"][4]["accuracy_drop"].get<double>(), 11.0 / 300);
  EXPECT_THAT(Run({"curves", "quick"}).out, HasSubstr("rope distance, mean of 1 of 2 seeds"));
  EXPECT_THAT(Run({"ablation", "a00001"}).out, HasSubstr("layer 1     3.3    3.7    4.0"));
  EXPECT_THAT(Run({"curves", "4"}).out, HasSubstr("has no finished epoch yet"));
  EXPECT_THAT(Run({"ablation", "--sweep", "1", "--output", "csv"}).out,
              HasSubstr("job_id,method,hygiene,split"));
}

TEST_F(CliTest, AblationMarksWhatMayBeChance) {
  const CliResult drops = Run({"ablation", "1"});
  EXPECT_THAT(drops.out, HasSubstr("layer 0     0.0?   0.3?   0.7?\n")) << "0, 1 and 2 of 300";
  EXPECT_THAT(drops.out, HasSubstr("?: within 3 standard\nerrors"));
  EXPECT_THAT(Run({"ablation", "1", "--metric", "nll_drop"}).out,
              HasSubstr("layer 1   0.100  0.110  0.120\n"));
  EXPECT_THAT(Run({"ablation", "1", "--metric", "normalised_drop"}).out,
              HasSubstr("in percent of what is\nabove chance"));
  const Json head = RunJson({"ablation", "1", "--method", "zero"})["head_ablation"][4];
  EXPECT_EQ(head["drop_counts"], true);
  EXPECT_EQ(head["lost"], 11);
  EXPECT_LT(head["drop_interval"][0].get<double>(), 11.0 / 300);
}

TEST_F(CliTest, DepositsAreAggregated) {
  const Json json = RunJson({"deposits", "quick"});
  ASSERT_EQ(json["groups"].size(), 2u);
  EXPECT_EQ(json["groups"][0]["n"], 2);
  EXPECT_DOUBLE_EQ(json["groups"][0]["max_drop"]["mean"].get<double>(), 12.0 / 300);
  EXPECT_EQ(json["groups"][0]["top_layer"], 1);
  EXPECT_EQ(json["groups"][0]["deposit_seeds"], 0);
  EXPECT_EQ(json["groups"][1]["failed"], 1);
  EXPECT_EQ(json["deposits"].size(), 9u) << "three matrices of two layers";
  EXPECT_THAT(
      Run({"deposits", "quick"}).out,
      HasSubstr("nope  distance  4.0±0.0  0.36±0.00  0.52±0.00  3.0±0.0      0/2  layer 1  2\n"
                "                                                                 (2/2)\n"));
  EXPECT_THAT(
      Run({"deposits", "1"}).out,
      HasSubstr("layer 1  1\n"
                "                                                                  head 2\n"));
  EXPECT_THAT(Run({"deposits", "quick", "--seeds", "--output", "csv"}).out,
              HasSubstr("job_id,method,hygiene,split,target,layer,max_drop"));
  EXPECT_THAT(Run({"deposits", "quick", "--output", "csv"}).out, HasSubstr("max_drop_mean"));
  EXPECT_THAT(Run({"deposits", "4"}).out, HasSubstr("job 4 has no deposit indices yet"));
}

TEST_F(CliTest, AnalysesAreListedAndShown) {
  EXPECT_THAT(Run({"analyses", "quick"}).out,
              HasSubstr("head_ablation: zero ablation, test data, clean hygiene\n"));
  EXPECT_THAT(Run({"analyses", "1", "--name", "layer_ablation"}).out,
              HasSubstr("0               20.0±4.5"));
  EXPECT_THAT(Run({"analyses", "1", "--name", "cumulative_ablation"}).out,
              HasSubstr("job 1 has no cumulative_ablation yet"));
  const Json json = RunJson({"analyses", "1"});
  ASSERT_EQ(json["analyses"].size(), 2u);
  EXPECT_EQ(json["analyses"][1]["result"]["lost"][0], 60);
  EXPECT_EQ(json["analyses"][1]["intact_correct"], 101);
}

TEST_F(CliTest, ArtifactsAreListedAndWritten) {
  EXPECT_EQ(RunJson({"artifacts", "quick"})["artifacts"].size(), 3u);
  const std::string out = file_.directory() + "/got";
  const std::vector<std::string> get = {"artifacts",           "1",     "get",
                                        "weights.safetensors", "--out", out};
  EXPECT_THAT(Run(get).out, HasSubstr(out + ": 9 bytes, sha256 "));
  EXPECT_EQ(std::filesystem::file_size(out), 9u);
  EXPECT_THAT(Run({"artifacts", "4"}).out, HasSubstr("job 4 has no stored files"));
}

TEST_F(CliTest, AStoredNameThatIsNoFileNameIsNoPath) {
  const std::string outside = file_.directory() + "/outside";
  const std::string name = file_.directory() + "/./outside";
  file_.Execute("UPDATE artifacts SET name = '" + name + "' WHERE name = 'weights.safetensors'");
  const CliResult refused = Run({"artifacts", "1", "get", name});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("is not a plain file name; say with --out where to write it"));
  EXPECT_FALSE(std::filesystem::exists(outside));
  EXPECT_EQ(Run({"artifacts", "1", "get", name, "--out", outside}).code, 0);
  EXPECT_EQ(std::filesystem::file_size(outside), 9u);
}

TEST_F(CliTest, AJobThatIsAnalyzedAgainKeepsItsResult) {
  file_.Execute("UPDATE jobs SET state = 'running' WHERE job_id = 1");
  EXPECT_EQ(RunJson({"results", "quick"})["groups"][0]["n"], 2);
  EXPECT_THAT(Run({"jobs", "quick"}).out, HasSubstr("running (analysis)"));
  EXPECT_THAT(Run({"status", "quick"}).out, HasSubstr("analyzing"));
}

TEST_F(CliTest, DataNeverReachTheTerminalRaw) {
  const CliResult jobs = Run({"jobs", "quick", "--state", "failed"});
  EXPECT_THAT(jobs.out, HasSubstr("oom\\x1b[31m"));
  const CliResult logs = Run({"logs", "1"});
  EXPECT_EQ(logs.out, "epoch 0\n\\x1b[31m done\n");
  EXPECT_EQ(RunJson({"logs", "1"})["parts"][0]["text"], "epoch 0\n\x1b[31m done");
}

TEST_F(CliTest, AStoredNameIsNotWrittenThroughALink) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(file_.directory());
  std::ofstream("mine") << "mine";
  std::filesystem::create_symlink("mine", "weights.safetensors");
  std::vector<std::string> get = {"artifacts", "1", "get", "weights.safetensors", "--force"};
  const CliResult refused = Run(get);
  const auto bytes_after_refusal = std::filesystem::file_size("mine");
  get.insert(get.end(), {"--out", "weights.safetensors"});  // named by the user, not by the file
  const CliResult followed = Run(get);
  const auto bytes_at_last = std::filesystem::file_size("mine");
  std::filesystem::current_path(before);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("weights.safetensors is a link; say with --out where"));
  EXPECT_EQ(bytes_after_refusal, 4u);
  EXPECT_EQ(followed.code, 0) << followed.err;
  EXPECT_EQ(bytes_at_last, 9u);
}

TEST_F(CliTest, OverridesOfAForeignFileMayBeAnything) {
  file_.Execute(R"(UPDATE sweeps SET overrides_json = '[{"field":3,"value":[]},{"value":"x"}]')");
  EXPECT_EQ(RunJson({"status", "quick"})["sweep"]["name"], "quick");
}

TEST_F(CliTest, StatusWithoutACoordinator) {
  const CliResult status = Run({"status"});
  EXPECT_EQ(status.code, 0);
  EXPECT_THAT(status.out, HasSubstr("(nobody serves it)"));
  const Json one = RunJson({"status", "quick"});
  EXPECT_EQ(one["sweep"]["succeeded"], 3);
  EXPECT_EQ(one["sweep"]["failed"], 1);
  EXPECT_EQ(RunJson({"workers"})["workers"][0]["state"], "offline");
}

TEST_F(CliTest, StatusAndJobsTellWhatASuccessLacks) {
  EXPECT_THAT(Run({"status", "quick"}).out, Not(HasSubstr("warning")));
  file_.Execute(
      "UPDATE jobs SET warning = 'the weights were not kept' || char(27) WHERE job_id = 1");
  EXPECT_THAT(Run({"status", "quick"}).out,
              HasSubstr("warning: job 1: the weights were not kept\\x1b; pelab jobs"));
  EXPECT_THAT(Run({"jobs", "quick"}).out, HasSubstr("warning: "));
  file_.Execute("UPDATE jobs SET warning = 'none were kept' WHERE job_id = 2");
  EXPECT_THAT(Run({"status", "quick"}).out, HasSubstr("(and 1 more)"));
}

TEST_F(CliTest, CheckPassesAndThenNamesAGap) {
  const CliResult before = Run({"db", "check"});
  EXPECT_EQ(before.code, 0) << before.out;
  file_.Execute("DELETE FROM curves WHERE attempt_id = 1 AND epoch = 0");
  const CliResult after = Run({"db", "check"});
  EXPECT_EQ(after.code, 1);
  EXPECT_THAT(after.out, HasSubstr("job 1: 1 of 2 epochs are stored"));
  EXPECT_THAT(after.out, HasSubstr("job 1: 1 rows for 1 epochs from 1 to 1"));
}

TEST_F(CliTest, BackupIsAWholeCopy) {
  const std::string copy = file_.directory() + "/copy.db";
  const Json done = RunJson({"db", "backup", copy});
  EXPECT_EQ(done["artifacts"], 3);
  EXPECT_EQ(done["missing_artifacts"], Json::array());
  EXPECT_EQ(RunCli({"results", "--output", "json", "--db", copy}).out,
            Run({"results", "--output", "json"}).out);
  EXPECT_EQ(RunCli({"db", "check", "--db", copy}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(copy + ".partial"));
  const CliResult again = Run({"db", "backup", copy});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("is there already"));
}

// Damaged and missing files are not copied, and the report says so. Opening a pipe would wait for a
// writer.
TEST_F(CliTest, BackupSaysWhatTheOriginalLacks) {
  std::ofstream(*db::ArtifactPath(file_.path(), Sha256Hex(ArtifactForTest(1)))) << "weighty 1";
  std::filesystem::remove(*db::ArtifactPath(file_.path(), Sha256Hex(ArtifactForTest(2))));
  const std::string third = *db::ArtifactPath(file_.path(), Sha256Hex(ArtifactForTest(3)));
  std::filesystem::remove(third);
  ASSERT_EQ(mkfifo(third.c_str(), 0600), 0);
  const std::string copy = file_.directory() + "/copy.db";
  const CliResult result = Run({"db", "backup", copy, "--output", "json"});
  EXPECT_EQ(result.code, 1);
  const Json done = Json::parse(result.out);
  EXPECT_EQ(done["artifacts"], 0);
  EXPECT_EQ(done["missing_artifacts"].size(), 3u);
  EXPECT_THAT(Run({"artifacts", "3", "get", "weights.safetensors", "--out", copy + ".3"}).err,
              HasSubstr("no stored file"));
  EXPECT_EQ(RunCli({"db", "check", "--db", copy}).code, 1);
}

// The file may come from somebody else: its rows can name any file.
TEST_F(CliTest, WhatIsNoHashIsNeitherReadNorWritten) {
  const std::string folder = file_.directory() + "/copies";
  std::filesystem::create_directories(folder);
  // What that row would lead to in the original, and in the copy.
  const std::string read = file_.directory() + "/victim";
  const std::string written = folder + "/victim";
  std::ofstream(read) << "victim";
  std::ofstream(written) << "victim";
  file_.Execute("UPDATE artifacts SET sha256 = './../victim', bytes = 6 WHERE attempt_id = 1");
  const CliResult result = Run({"db", "backup", folder + "/copy.db", "--output", "json"});
  EXPECT_EQ(result.code, 1) << result.err;
  const Json done = Json::parse(result.out);
  EXPECT_EQ(done["artifacts"], 2);
  EXPECT_EQ(done["missing_artifacts"], Json::array({"./../victim"}));
  std::stringstream left;
  left << std::ifstream(written).rdbuf();
  EXPECT_EQ(left.str(), "victim");
  const CliResult check = Run({"db", "check"});
  EXPECT_EQ(check.code, 1);
  EXPECT_THAT(check.out, HasSubstr("an artifact of attempt 1: \"./../victim\""));
  const std::string out = file_.directory() + "/out";
  EXPECT_THAT(Run({"artifacts", "1", "get", "weights.safetensors", "--out", out}).err,
              HasSubstr("is no SHA-256"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

// Leaves the files that a killed backup would leave.
TEST_F(CliTest, BackupTakesOverWhatAKilledOneLeft) {
  const std::string copy = file_.directory() + "/copy.db";
  std::ofstream(copy + ".partial") << std::string(1 << 20, 'x');
  std::filesystem::create_directories(copy + ".partial.artifacts/ab");
  std::ofstream(copy + ".partial.artifacts/ab/abcd") << "half";
  EXPECT_EQ(Run({"db", "backup", copy}).code, 0);
  EXPECT_EQ(RunCli({"db", "check", "--db", copy}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(copy + ".artifacts/ab/abcd"));
  EXPECT_EQ(Run({"db", "backup", file_.directory() + "/no/such/copy.db"}).code, 2);
}

TEST_F(CliTest, MigrateOfANewFileDoesNothing) {
  const Json nothing = RunJson({"db", "migrate"});
  EXPECT_EQ(nothing["from"], nothing["to"]);
  EXPECT_EQ(nothing["copy"], Json());
  EXPECT_THAT(Run({"db", "migrate"}).out, HasSubstr("there is nothing to do"));
  EXPECT_THAT(RunCli({"db", "migrate", "--db", file_.directory() + "/none.db"}).err,
              HasSubstr("no database at"));
}

TEST_F(CliTest, InfoCounts) {
  const Json info = RunJson({"db", "info"});
  EXPECT_EQ(info["jobs"], 4);
  EXPECT_EQ(info["epochs"], 6);
  EXPECT_EQ(info["ablated_heads"], 18);
}

TEST_F(CliTest, DryRunAsksTheFile) {
  const std::string sweep = file_.directory() + "/sweep.yaml";
  std::ofstream(sweep)
      << "name: s\nprotocol: clean\npe: [nope, rope]\ntask: distance\nseed: [0, 1, 2]\n";
  const Json json = RunJsonIgnoringErrors({"submit", sweep, "--dry-run"});
  EXPECT_EQ(json["counts"]["new"], 6);
  ASSERT_EQ(json["jobs"].size(), 6u);
  file_.AddJob({.key = json["jobs"][0]["key"].get<std::string>()});
  const Json again = RunJsonIgnoringErrors({"submit", sweep, "--dry-run"});
  EXPECT_EQ(again["counts"]["stored"], 1);
  EXPECT_EQ(again["counts"]["new"], 5);
  EXPECT_EQ(RunJsonIgnoringErrors({"run", sweep, "--dry-run", "--fresh"})["counts"]["new"], 6);
}

// Adds a third PE whose jobs differ in a field and have run.
void AddAxis(db::DatabaseForTest& file) {
  for (const int layers : {2, 4}) {
    const auto job = file.AddJob(
        {.key = "e" + std::to_string(layers),
         .pe = "alibi",
         .seed = 0,
         .state = "running",
         .spec_json = R"({"format":1,"model":{"layers":)" + std::to_string(layers) +
                      R"(},"pe":{"name":"alibi"},"seed":0,"task":{"name":"distance"}})"});
    file.AddToSweep(1, 10 + layers, job);
    const auto attempt = file.AddAttempt(job, 1, 0, "");
    file.Execute("INSERT INTO logs VALUES (" + std::to_string(attempt) +
                 ", 0, CAST('epoch 0' || char(10) AS BLOB))");
  }
}

TEST_F(CliTest, FieldsThatVaryAreShownWhereverJobsAre) {
  EXPECT_THAT(Run({"jobs", "quick"}).out, Not(HasSubstr("model.layers")));
  AddAxis(file_);
  const std::string jobs = Run({"jobs", "quick", "--state", "running,succeeded"}).out;
  EXPECT_THAT(jobs, ContainsRegex("job +key +pe +task +model.layers +seed"));
  EXPECT_THAT(jobs, ContainsRegex("alibi +distance +4"));
  EXPECT_THAT(Run({"results", "quick", "--seeds"}).out, ContainsRegex("alibi +distance +4"));
  EXPECT_THAT(Run({"status", "quick"}).out, HasSubstr("alibi distance seed 0 model.layers=4"));
  const CliResult log = Run({"logs", "6"});
  EXPECT_EQ(log.out, "epoch 0\n");
  EXPECT_EQ(log.err, "job 6: alibi distance seed 0 model.layers=4, running\n");
}

TEST_F(CliTest, WhatComputedJobsIsSaidWhereItIsMixed) {
  const std::string cpu = R"('{"device":"cpu","libtorch":"1.13.0","threads":2}')";
  file_.Execute("UPDATE attempts SET environment_json = " + cpu);
  for (const char* command : {"status", "jobs", "results"}) {
    EXPECT_THAT(Run({command, "quick"}).out,
                HasSubstr("\ncomputed by all 3: cpu, LibTorch 1.13.0\n"));
  }
  file_.Execute(
      "UPDATE attempts SET environment_json = replace(environment_json, '1.13.0', '2.1.0') "
      "WHERE job_id = 2");
  EXPECT_THAT(
      Run({"results", "quick"}).out,
      HasSubstr("\ncomputed by 2 of 3: cpu, LibTorch 1.13.0; job 2: cpu, LibTorch 2.1.0\n"));
}

TEST_F(CliTest, TopKeepsTheBestGroupsAndSaysHowManyItLeftOut) {
  EXPECT_EQ(Run({"results", "quick", "--top", "1"}).out,
            "pe    task      test_accuracy  95% interval    n  seeds\n"
            "rope  distance        ~0.3833             -  1/2  1 failed\n"
            "~ not every seed of this group has a result\n"
            "the 1 best of 2 by mean test_accuracy, highest first; 1 left out\n");
  EXPECT_THAT(Run({"results", "quick", "--top", "2"}).out, Not(HasSubstr("left out")));
  const Json json =
      RunJson({"results", "quick", "--top", "1", "--metric", "test_accuracy,epochs_to(0.3)"});
  ASSERT_EQ(json["groups"].size(), 2u) << "one for each metric";
  EXPECT_EQ(json["groups"][0]["pe"], "rope");
  EXPECT_EQ(json["groups_left_out"], Json::array({1, 1}));
  EXPECT_FALSE(RunJson({"results", "quick"}).contains("groups_left_out"));
  EXPECT_THAT(Run({"results", "quick", "--top", "1", "--seeds"}).err, HasSubstr("--seeds"));
  EXPECT_EQ(Run({"results", "quick", "--top", "0"}).code, 2);
}

TEST_F(CliTest, WhereOfEveryCommandAboutResults) {
  const std::vector<std::string> nope = {"--where", "pe=nope"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), nope.begin(), nope.end());
    return arguments;
  };
  for (const char* command : {"ablation", "curves", "deposits", "analyses"}) {
    const std::string of_sweep = Run(with({command, "quick"})).out;
    EXPECT_THAT(of_sweep, HasSubstr("nope")) << command;
    EXPECT_THAT(of_sweep, Not(HasSubstr("rope"))) << command;
    const CliResult of_all = Run(with({command}));
    EXPECT_EQ(of_all.code, 0) << of_all.err;
    EXPECT_THAT(of_all.out, Not(HasSubstr("rope"))) << command;
    EXPECT_THAT(Run({command, "quick", "--where", "pee=nope"}).err, HasSubstr("did you mean pe"));
  }
  EXPECT_THAT(Run(with({"analyses", "3"})).out, HasSubstr("job 3 where pe=nope has no analysis"));
  const std::string folder = file_.directory() + "/some";
  const Json exported = RunJsonIgnoringErrors(with({"export", "quick", "--out", folder}));
  EXPECT_EQ(exported["jobs"], 2);
  std::ifstream readme(folder + "/README.md");
  const std::string text{std::istreambuf_iterator<char>(readme), {}};
  EXPECT_THAT(text, HasSubstr("`pe=nope`"));
  EXPECT_THAT(text, HasSubstr("all 2 jobs that meet the condition are trained"));
  const std::string page = file_.directory() + "/some.html";
  EXPECT_EQ(RunJson(with({"report", "quick", "--out", page}))["jobs"], 2);
  EXPECT_EQ(Run({"report", "quick", "--out", page, "--force", "--where", "pe=mla"}).code, 2);
  EXPECT_EQ(Run({"export", "quick", "--out", folder + "2", "--where", "pe=mla"}).code, 2);
}

TEST(CliHelpTest, EveryCommandHasExamplesAndVersion) {
  for (const char* command :
       {"run",      "submit",   "status",  "jobs",      "logs",      "cancel",  "pause",
        "resume",   "priority", "retry",   "extend",    "results",   "curves",  "ablation",
        "deposits", "analyses", "analyze", "artifacts", "report",    "catalog", "workers",
        "alloc",    "admin",    "audit",   "db",        "completion"}) {
    const CliResult result = RunCli({command, "--help"});
    const std::string& help = result.out;
    EXPECT_EQ(result.code, 0);
    const std::size_t examples = help.find("Examples:\n");
    ASSERT_NE(examples, std::string::npos) << command;
    std::size_t count = 0;
    for (std::size_t at = examples;
         (at = help.find("pelab " + std::string(command), at + 1)) != std::string::npos;)
      ++count;
    EXPECT_GE(count, 2u) << help;
    EXPECT_THAT(help, HasSubstr("[default: pelab.db]"));
  }
  EXPECT_EQ(RunCli({"--version"}).code, 0);
  EXPECT_EQ(RunCli({"--version"}).out, "pelab " + VersionText() + "\n");
}

TEST(CliCompletionTest, BashScriptCompletesCommandsAndFlags) {
  const CliResult script = RunCli({"completion", "bash"});
  ASSERT_EQ(script.code, 0);
  const auto path =
      std::filesystem::temp_directory_path() / ("pelab-completion-" + std::to_string(getpid()));
  std::ofstream(path) << script.out << R"sh(
complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pelab; echo "${COMPREPLY[@]}"; }
[ "$(complete_words pelab resul)" = results ] || exit 1
[ "$(complete_words pelab res)" = "resume results" ] || exit 1
[ "$(complete_words pelab workers dr)" = drain ] || exit 1
[ "$(complete_words pelab admin to)" = token ] || exit 1
[ "$(complete_words pelab admin principal di)" = disable ] || exit 1
[ "$(complete_words pelab admin principal add --ce)" = --cert-uri ] || exit 1
[ "$(complete_words pelab extend --se)" = "--server --seed" ] || exit 1
[ "$(complete_words pelab db che)" = check ] || exit 2
[ "$(complete_words pelab run --dry)" = --dry-run ] || exit 3
[ "$(complete_words pelab results --output j)" = "json jsonl" ] || exit 4
)sh";
  EXPECT_EQ(WEXITSTATUS(std::system(("bash " + path.string()).c_str())), 0);
  std::filesystem::remove(path);
  EXPECT_THAT(RunCli({"completion", "zsh"}).out, HasSubstr("#compdef pelab"));
}

TEST(CliCatalogTest, EntriesAndFields) {
  EXPECT_THAT(RunCli({"catalog", "pe"}).out, HasSubstr("rope"));
  const std::string distance = RunCli({"catalog", "task", "distance"}).out;
  for (const char* field : {"task.length", "task.vocabulary", "task.train_examples",
                            "task.test_examples", "task.max_distance"}) {
    EXPECT_THAT(distance, HasSubstr(field));
  }
  EXPECT_THAT(distance, Not(HasSubstr("task.triggers"))) << "of counting";
  EXPECT_THAT(RunCli({"catalog", "field"}).out, HasSubstr("feed-forward block")) << "whole words";
  const Json field = Json::parse(RunCli({"catalog", "field", "train.lr", "--output", "json"}).out);
  EXPECT_EQ(field["fields"][0]["default"], "0.0001");
  const CliResult unknown = RunCli({"catalog", "pe", "ropee"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean rope"));
}

}  // namespace
}  // namespace pelab::client
