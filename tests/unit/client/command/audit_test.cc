#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/limits.h"
#include "core/render/json.h"
#include "tests/support/fake_service.h"
#include "tests/unit/client/cli_fixture.h"

namespace pelab::client {
namespace {

using render::Json;
using ::testing::HasSubstr;

constexpr char kTime[] = "1700000000000";  // 2023-11-14 22:13:20 UTC

class AuditTest : public ::testing::Test {
 protected:
  AuditTest() { unsetenv("PELAB_SERVER"); }
  void Add(int id, const std::string& time, const std::string& principal,
           const std::string& outcome, int count = 1) {
    file_.Execute(absl::StrCat("INSERT INTO audit VALUES (", id, ", ", time, ", '", principal,
                               "', 'ipv4:10.0.0.7:5', 'Sweeps/Cancel', 'sweep ", id, "', '",
                               outcome, "', ", count, ", '', 'h", id, "')"));
  }
  void AddThree() {
    Add(1, kTime, "alice", "OK");
    Add(2, kTime, "", "UNAUTHENTICATED", 12);
    Add(3, "1700000001000", "bob", "PERMISSION_DENIED");
  }
  CliResult Audit(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "audit");
    arguments.insert(arguments.end(), {"--db", file_.path()});
    return RunCli(std::move(arguments));
  }

  db::DatabaseForTest file_;
};

TEST_F(AuditTest, ATableOfWhatWasDone) {
  AddThree();
  EXPECT_EQ(Audit({"--principal", "alice"}).out,
            "time (UTC)           principal  method         target   outcome  peer\n"
            "2023-11-14 22:13:20  alice      Sweeps/Cancel  sweep 1  OK       ipv4:10.0.0.7:5\n");
  const std::string all = Audit({}).out;
  EXPECT_THAT(all, HasSubstr("2023-11-14 22:13:20  -  "));
  EXPECT_THAT(all, HasSubstr("(12)")) << "how many refusals the row stands for";
}

TEST_F(AuditTest, EveryColumnIsInJsonAndCsv) {
  AddThree();
  const Json json = Json::parse(Audit({"--output", "json"}).out);
  ASSERT_EQ(json["audit"].size(), 3u);
  EXPECT_EQ(json["audit"][1].dump(),
            R"({"audit_id":2,"at_ms":1700000000000,"principal":"","peer":"ipv4:10.0.0.7:5",)"
            R"("method":"Sweeps/Cancel","target":"sweep 2","outcome":"UNAUTHENTICATED",)"
            R"("count":12,"trace_id":"","sha256":"h2"})");
  EXPECT_EQ(
      Audit({"--output", "csv", "--principal", "bob"}).out,
      "audit_id,at_ms,principal,peer,method,target,outcome,count,trace_id,sha256\r\n"
      "3,1700000001000,bob,ipv4:10.0.0.7:5,Sweeps/Cancel,sweep 3,PERMISSION_DENIED,1,,h3\r\n");
  const std::string lines = Audit({"--output", "jsonl"}).out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
}

TEST_F(AuditTest, SinceATime) {
  AddThree();
  const auto count = [&](const std::string& since) {
    return Json::parse(Audit({"--since", since, "--output", "json"}).out)["audit"].size();
  };
  EXPECT_EQ(count("2023-11-14"), 3u);
  EXPECT_EQ(count("2023-11-14T22:13:21Z"), 1u);
  EXPECT_EQ(count("1d"), 0u);
  const CliResult wrong = Audit({"--since", "yesterday"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("invalid --since \"yesterday\"; allowed: "));
}

TEST_F(AuditTest, AnEmptyRecordIsSaid) {
  EXPECT_EQ(Audit({}).out, "nothing is recorded\n");
  EXPECT_EQ(Json::parse(Audit({"--output", "json"}).out)["audit"], Json::array());
}

// The coordinator gives two rows a page here.
TEST_F(AuditTest, ACoordinatorAnswersTheSame) {
  AddThree();
  const ServiceForTest service(file_.path(), file_.directory() + "/s");
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {}, {"--output", "json"}, {"--output", "csv"}, {"--output", "jsonl", "--since", "1d"}}) {
    std::vector<std::string> remote = {"audit", "--server", service.address()};
    remote.insert(remote.end(), options.begin(), options.end());
    const CliResult result = RunCli(remote);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, Audit(options).out);
  }
}

TEST_F(AuditTest, ALongRecordIsSeveralTables) {
  file_.Execute("BEGIN");
  for (int i = 1; i <= limits::kAuditTableRows + 1; ++i) Add(i, kTime, "alice", "OK");
  file_.Execute("COMMIT");
  const std::string out = Audit({}).out;
  const auto count = [&](const std::string& text) {
    int found = 0;
    for (std::size_t at = 0; (at = out.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("time (UTC)"), 2);
  EXPECT_EQ(count("2023-11-14 22:13:20"), limits::kAuditTableRows + 1);
}

}  // namespace
}  // namespace pelab::client
