#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "client/source/connect.h"
#include "core/render/json.h"
#include "core/rpc/lock_file.h"
#include "migrations/schema.h"
#include "tests/unit/client/cli_fixture.h"

namespace pelab::client {
namespace {

using render::Json;
using ::testing::HasSubstr;

class CliErrorsTest : public ::testing::Test {
 protected:
  CliErrorsTest() { unsetenv("PELAB_SERVER"); }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = file_.directory() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  void Expect(std::vector<std::string> arguments, int code, const std::string& message) {
    const CliResult plain = RunCli(arguments);
    EXPECT_EQ(plain.code, code) << plain.err;
    EXPECT_THAT(plain.err, HasSubstr(message));
    EXPECT_EQ(plain.out, "");
    arguments.insert(arguments.end(), {"--output", "json"});
    const CliResult json = RunCli(arguments);
    EXPECT_EQ(json.code, code);
    EXPECT_EQ(json.err, "");
    const Json value = Json::parse(json.out, nullptr, false);
    ASSERT_TRUE(value.is_object() && value.contains("error")) << json.out;
    EXPECT_EQ(value["error"]["exit_code"], code);
  }

  db::DatabaseForTest file_;
};

constexpr char kSweep[] = "name: s\nprotocol: clean\npe: [nope]\ntask: distance\nseed: [0]\n";

TEST_F(CliErrorsTest, Usage) {
  Expect({"resluts"}, 2, "unknown command \"resluts\"; did you mean results");
  Expect({"results", "--frob"}, 2, "--frob");
  Expect({"results", "quick", "--seed"}, 2, "unexpected argument: --seed; did you mean --seeds?");
  Expect({"results", "quick", "one", "two", "--frob=3"}, 2,
         "unexpected arguments: one two --frob=3 (see pelab results --help)");
  Expect({"extend", "quick", "--sead", "5"}, 2, "did you mean --seed?");
  Expect({"workers", "drein", "gpu1"}, 2, "did you mean drain?");
  Expect({"run"}, 2, "SWEEP.yaml is required");
  Expect({"submit", "x.yaml", "--priority", "1001"}, 2, "--priority");
  Expect({"curves"}, 2, "name one job or one sweep");
  Expect({"cancel"}, 2, "either SWEEP or --job");
  Expect({"retry"}, 2, "either SWEEP or --job");
  Expect({"pause"}, 2, "SWEEP is required");
  Expect({"priority", "quick"}, 2, "PRIORITY is required");
  Expect({"priority", "quick", "1001"}, 2, "PRIORITY");
  Expect({"extend", "quick"}, 2, "--seed is required");
  Expect({"workers", "drain"}, 2, "WORKER is required");
  Expect({"workers", "drain", "gpu1", "--mode", "gently"}, 2, "--mode");
  Expect({"alloc"}, 2, "subcommand is required");
  Expect({"alloc", "puase", "gpu"}, 2, "did you mean pause?");
  Expect({"alloc", "pause", "gpu"}, 2, "--reason is required");
  Expect({"alloc", "remove"}, 2, "QUEUE is required");
  Expect({"alloc", "add"}, 2, "FILE is required");
  Expect({"alloc", "add", file_.directory() + "/none.toml"}, 2, "none.toml");
  Expect({"alloc", "add", Write("bad.toml", "[queue.gpu]\nslots = 0\n")}, 2,
         "bad.toml:2:9: slots must be an integer from 1 to 1024, not 0");
  Expect({"admin"}, 2, "subcommand is required");
  Expect({"admin", "principal", "add", "alice"}, 2, "--role is required");
  Expect({"admin", "principal", "add", "alice", "--role", "boss"}, 2, "--role");
  Expect({"admin", "principal", "list", "--shrae", "2"}, 2, "unexpected argument");
  Expect({"admin", "token", "rotate"}, 2, "NAME is required");
  Expect({"admin", "ca", "issue", "ca", "robot", "r2"}, 2, "KIND");
}

TEST_F(CliErrorsTest, SweepFiles) {
  const std::string db = file_.directory() + "/new.db";
  Expect({"run", file_.directory() + "/none.yaml", "--db", db}, 2, "none.yaml");
  const std::string bad = Write(
      "bad.yaml", "name: s\nprotocol: clean\npe: [nope, alibbi]\ntask: distance\nseed: 5..1\n");
  Expect({"run", bad, "--db", db}, 2, bad + ":3:");
  Expect({"submit", bad, "--db", db}, 2, "alibbi");
  const CliResult all = RunCli({"submit", bad, "--dry-run", "--db", db});
  EXPECT_THAT(all.err, HasSubstr(bad + ":5:")) << "every violation has its line";
  const Json json = Json::parse(RunCli({"run", bad, "--output", "json"}).out);
  ASSERT_GE(json["error"]["violations"].size(), 2u);
  EXPECT_EQ(json["error"]["violations"][0]["line"], 3);
  EXPECT_EQ(json["error"]["file"], bad);
  Expect({"run", Write("broken.yaml", "name: [s\n"), "--db", db}, 2, "broken.yaml:");
  Expect({"run", Write("ok.yaml", kSweep), "--set", "train.epochs=-1", "--db", db}, 2,
         "train.epochs");
  Expect({"run", Write("ok.yaml", kSweep), "--set", "train.epochs", "--db", db}, 2, "FIELD=VALUE");
  Expect({"run", Write("ok.yaml", kSweep), "--name", "a b", "--db", db}, 2,
         "--name must be 1 to 100 letters");
  EXPECT_FALSE(std::filesystem::exists(db)) << "nothing is stored for what is wrong";
}

TEST_F(CliErrorsTest, NoCoordinator) {
  const std::string sweep = Write("ok.yaml", kSweep);
  const std::string nobody = "unix:" + file_.directory() + "/nobody.sock";
  Expect({"submit", sweep, "--server", nobody}, 4, "no coordinator at " + nobody);
  Expect({"status", "--server", nobody}, 4, nobody);
  Expect({"submit", sweep, "--db", file_.path()}, 4, "no coordinator");
  const std::string none = file_.directory() + "/none.db";  // these start one for a file
  Expect({"cancel", "quick", "--db", none}, 4, "no coordinator");
  Expect({"pause", "quick", "--db", none}, 4, "no coordinator");
  Expect({"sweeps", "delete", "quick", "--yes", "--db", none}, 4, "no coordinator");
  Expect({"retry", "quick", "--db", none}, 4, "no coordinator");
  Expect({"extend", "quick", "--seed", "5", "--db", none}, 4, "no coordinator");
  Expect({"workers", "drain", "gpu1", "--db", file_.path()}, 4, "no coordinator");
  Expect({"alloc", "list", "--db", file_.path()}, 4, "no coordinator");
  Expect({"admin", "whoami", "--db", file_.path()}, 4, "no coordinator");
  Expect({"admin", "principal", "list", "--db", file_.path()}, 4, "no coordinator");
  Expect({"status", "--server", "nonsense"}, 2, "nonsense");
  setenv("PELAB_SERVER", nobody.c_str(), 1);
  Expect({"results"}, 4, nobody);
  Expect({"run", sweep}, 2, "pelab submit --watch");
  EXPECT_THAT(RunCli({"results", "--db", file_.path()}).err,
              HasSubstr("note: pelab results asks the coordinator at " + nobody +
                        ", which --server or PELAB_SERVER names; --db is not used\n"));
  unsetenv("PELAB_SERVER");
}

TEST_F(CliErrorsTest, Databases) {
  const std::string sweep = Write("ok.yaml", kSweep);
  Expect({"status", "--db", file_.directory() + "/none.db"}, 2, "none.db");
  const std::string text = Write("text.db", "this is no database, whatever its name says");
  Expect({"results", "--db", text}, 2, "is not a pelab database");
  Expect({"run", sweep, "--db", text}, 2, "is not a pelab database");
  file_.Execute("PRAGMA user_version = " + std::to_string(migrations::NewestSchema() + 1));
  Expect({"results", "--db", file_.path()}, 2, "from a newer pelab");
  Expect({"run", sweep, "--db", file_.path()}, 2, "from a newer pelab");
  Expect({"db", "check", "--db", file_.path()}, 2, "from a newer pelab");
  EXPECT_FALSE(CheckDatabaseFile(file_.path()).ok());
  file_.Execute("PRAGMA user_version = 1");
  Expect({"results", "--db", file_.path()}, 2, "has schema version 1, from before the first");
  Expect({"run", sweep, "--db", file_.path()}, 2, "has schema version 1, from before the first");
}

TEST_F(CliErrorsTest, UnknownSweepsJobsAndFields) {
  FillForTest(file_);
  const std::vector<std::string> db = {"--db", file_.path()};
  const auto with_db = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), db.begin(), db.end());
    return arguments;
  };
  Expect(with_db({"results", "qiuck"}), 2, "no sweep \"qiuck\"; did you mean quick?");
  Expect(with_db({"results", "something"}), 2, "no sweep \"something\"; there are: quick");
  Expect(with_db({"curves", "qiuck"}), 2, "no sweep and no job \"qiuck\"; did you mean quick?");
  Expect(with_db({"ablation", "999"}), 2, "no job 999");
  Expect(with_db({"logs", "999"}), 2, "no job 999");
  Expect(with_db({"logs", "1", "--attempt", "7"}), 2, "no attempt 7");
  Expect(with_db({"results", "--where", "pee=rope"}), 2, "unknown field \"pee\"");
  Expect(with_db({"results", "--where", "pe"}), 2, "column 3: expected after");
  Expect(with_db({"results", "--metric", "acc"}), 2, "unknown metric \"acc\"");
  Expect(with_db({"curves", "quick", "--metric", "acc"}), 2, "unknown metric \"acc\"");
  Expect(with_db({"ablation", "quick", "--metric", "loss"}), 2, "known: accuracy_drop");
  Expect(with_db({"ablation", "quick", "--method", "mean"}), 2, "stored: zero");
  Expect(with_db({"deposits", "quick", "--hygiene", "authors"}), 2, "stored: clean");
  Expect(with_db({"analyses", "quick", "--name", "layers"}), 2, "known: head_ablation");
  Expect(with_db({"artifacts", "1", "get", "weights"}), 2, "it has: weights.safetensors");
  Expect(with_db({"artifacts", "1", "get"}), 2, "name the file to get");
  Expect(with_db({"artifacts", "1", "put", "x"}), 2, "unknown action \"put\"");
  Expect(with_db({"artifacts", "quick", "get", "weights.safetensors"}), 2, "get takes one job");
  Expect(with_db({"artifacts", "1", "--force"}), 2, "belong to: artifacts JOB get NAME");
  Expect(with_db({"analyze", "quick"}), 2, "--analysis");
  Expect(with_db({"analyze", "quick", "--analysis", "heads"}), 2, "unknown analysis \"heads\"");
  Expect(with_db({"jobs", "--state", "lost"}), 2, "unknown state \"lost\"");
}

TEST_F(CliErrorsTest, FlagsThatWouldBeIgnored) {
  const std::vector<std::string> seeds = {"results", "quick", "--seeds"};
  const std::vector<std::string> compare = {"results", "quick",  "--compare",
                                            "pe=rope", "--with", "pe=nope"};
  const auto with = [](std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  Expect(with(seeds, {"--top", "3"}), 2, "--top is about groups: leave out --seeds");
  Expect(with(seeds, {"--group-by", "pe"}), 2, "--group-by is about groups: leave out --seeds");
  Expect(with(seeds, {"--interval", "t"}), 2, "--interval is about groups: leave out --seeds");
  Expect(with(seeds, {"--metric", "gini"}), 2,
         "--metric is about groups: leave out --seeds; with --group-by pe,task,seed each seed is "
         "a group");
  Expect(with(compare, {"--seeds"}), 2, "--seeds is about single jobs: leave out --compare");
  Expect(with(compare, {"--top", "3"}), 2, "--top is about groups: leave out --compare");
  Expect(with(compare, {"--group-by", "pe"}), 2, "--group-by is about groups: leave out --compare");
}

TEST_F(CliErrorsTest, FlagsAboutHeadAblations) {
  const std::string heads = " is about head ablations; test_accuracy has none";
  const std::string any = " is about ablations; test_accuracy has none";
  Expect({"results", "--method", "zero"}, 2, "--method" + any);
  Expect({"results", "--hygiene", "clean"}, 2, "--hygiene" + heads);
  Expect({"results", "--data", "test"}, 2, "--data" + any);
  Expect({"results", "--target", "head"}, 2, "--target" + heads);
  Expect({"results", "--metric", "layer_drop(0)", "--target", "head"}, 2,
         "--target is about head ablations; layer_drop(0) has none");
  Expect({"results", "--metric", "test_accuracy,epochs_to(0.9)", "--target", "head"}, 2,
         "test_accuracy, epochs_to(0.9) have none");
  Expect({"results", "--metric", "gini", "--method", "nought"}, 2,
         "--method: nought not in {zero,mean,resample}");
  Expect({"results", "--metric", "gini", "--hygiene", "x"}, 2, "x not in {clean,authors}");
  Expect({"deposits", "quick", "--data", "train"}, 2, "train not in {test,all}");
  Expect({"ablation", "quick", "--target", "x"}, 2, "x not in {head,authors}");
  FillForTest(file_);
  const CliResult mixed = RunCli(
      {"results", "--metric", "test_accuracy,gini", "--method", "zero", "--db", file_.path()});
  EXPECT_EQ(mixed.code, 0) << mixed.err << "one of the metrics has ablations";
}

TEST_F(CliErrorsTest, EmptyConditions) {
  const std::string empty = ": the condition is empty; write one, as in pe=rope";
  Expect({"results", "--compare", "", "--with", "pe=nope"}, 2, "--compare" + empty);
  Expect({"results", "--compare", "pe=nope", "--with", " "}, 2, "--with" + empty);
  for (const char* command :
       {"results", "jobs", "curves", "ablation", "deposits", "analyses", "report"}) {
    Expect({command, "quick", "--where", ""}, 2, "--where" + empty);
  }
}

TEST_F(CliErrorsTest, ACoordinatorForOtherMachinesIsCalledByTheNameInItsCertificate) {
  auto lock = rpc::LockFile::Acquire(file_.path());
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_TRUE(lock->WriteAddress("0.0.0.0:1").ok());  // nobody listens there
  const std::string advice = "give that one with --server NAME:PORT";
  Expect({"admin", "whoami", "--db", file_.path()}, 4, advice);
  Expect({"db", "backup", file_.directory() + "/copy.db", "--db", file_.path()}, 2, advice);
}

TEST_F(CliErrorsTest, NoBackupWhileSomebodyWritesWhoDoesNotAnswer) {
  auto lock = rpc::LockFile::Acquire(file_.path());
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_TRUE(lock->WriteAddress("unix:/tmp/pelab-nobody.sock").ok());
  Expect({"db", "backup", file_.directory() + "/copy.db", "--db", file_.path()}, 2,
         "cannot back up: no coordinator at unix:/tmp/pelab-nobody.sock");
  EXPECT_FALSE(std::filesystem::exists(file_.directory() + "/copy.db"));
  EXPECT_FALSE(std::filesystem::exists(file_.directory() + "/copy.db.partial"));
}

}  // namespace
}  // namespace pelab::client
