// The command line of principals against a coordinator's service (tests/support/fake_admin.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/render/json.h"
#include "tests/support/fake_service.h"
#include "tests/unit/client/cli_fixture.h"

namespace pelab::client {
namespace {

using render::Json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kDayMs = 24 * 3'600'000;

class AdminTest : public ::testing::Test {
 protected:
  AdminTest() {
    unsetenv("PELAB_SERVER");
    service_ = std::make_unique<ServiceForTest>(file_.path(), file_.directory() + "/s");
  }
  CliResult Admin(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "admin");
    arguments.insert(arguments.end(), {"--server", service_->address()});
    return RunCli(std::move(arguments));
  }
  Json AdminJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--output", "json"});
    const CliResult result = Admin(std::move(arguments));
    EXPECT_EQ(result.err, "");
    return Json::parse(result.out, nullptr, false);
  }
  void AddMeAndAlice() {
    EXPECT_EQ(Admin({"principal", "add", "me", "--role", "operator"}).code, 0);
    EXPECT_EQ(Admin({"principal", "add", "alice", "--role", "submitter"}).code, 0);
  }
  std::string File(const std::string& name) const { return file_.directory() + "/" + name; }

  db::DatabaseForTest file_;
  std::unique_ptr<ServiceForTest> service_;
};

TEST_F(AdminTest, ATokenIsAloneOnStandardOutput) {
  const CliResult first = Admin({"principal", "add", "me", "--role", "operator"});
  EXPECT_EQ(first.code, 0);
  EXPECT_EQ(first.out, "token-of-me-1\n");
  EXPECT_EQ(first.err,
            "pelab: added the operator me\n"
            "pelab: its token is shown only now, and stored nowhere else; it goes into "
            "--token-file or PELAB_TOKEN\n"
            "pelab: from now on every call to this coordinator needs a principal\n");
  const CliResult second =
      Admin({"principal", "add", "alice", "--role", "submitter", "--expires", "90d"});
  EXPECT_EQ(second.out, "token-of-alice-1\n");
  EXPECT_THAT(second.err, HasSubstr("added the submitter alice, until 20"));
  EXPECT_THAT(second.err, Not(HasSubstr("from now on")));
  EXPECT_THAT(second.err, Not(HasSubstr("token-of"))) << "what is kept in logs has no token";
}

TEST_F(AdminTest, ATokenGoesIntoANewFile) {
  const std::string path = File("me.token");
  const CliResult added =
      Admin({"principal", "add", "me", "--role", "operator", "--token-out", path});
  EXPECT_EQ(added.code, 0) << added.err;
  EXPECT_EQ(added.out, "");
  EXPECT_THAT(added.err, HasSubstr("its token is in " + path));
  EXPECT_EQ(*ReadFile(path, 100), "token-of-me-1\n");
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);

  // A file that is there is refused before the coordinator is asked.
  const CliResult refused =
      Admin({"principal", "add", "alice", "--role", "reader", "--token-out", path});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--token-out: cannot create " + path));
  EXPECT_EQ(*ReadFile(path, 100), "token-of-me-1\n");
  EXPECT_EQ(AdminJson({"principal", "list"})["principals"].size(), 1u);

  // A refusal leaves no file.
  EXPECT_EQ(
      Admin({"principal", "add", "me", "--role", "reader", "--token-out", File("no.token")}).code,
      2);
  EXPECT_FALSE(std::filesystem::exists(File("no.token")));
}

TEST_F(AdminTest, JsonHasTheTokenOrItsFile) {
  const Json shown = AdminJson({"principal", "add", "me", "--role", "operator"});
  EXPECT_EQ(shown["name"], "me");
  EXPECT_EQ(shown["role"], "operator");
  EXPECT_EQ(shown["token"], "token-of-me-1");
  EXPECT_TRUE(shown["token_file"].is_null());
  const Json kept =
      AdminJson({"principal", "add", "a", "--role", "reader", "--token-out", File("a.token")});
  EXPECT_TRUE(kept["token"].is_null());
  EXPECT_EQ(kept["token_file"], File("a.token"));
}

TEST_F(AdminTest, AddSendsEverything) {
  AddMeAndAlice();
  const std::int64_t before = absl::ToUnixMillis(absl::Now());
  const Json bob = AdminJson({"principal", "add", "bob", "--role", "submitter", "--expires", "90d",
                              "--share", "2.5", "--max-slots", "8", "--max-queued", "1000",
                              "--gpu-seconds", "360000", "--max-priority", "7"});
  EXPECT_EQ(bob["share"], 2.5);
  EXPECT_EQ(bob["max_slots"], 8);
  EXPECT_EQ(bob["max_queued"], 1000);
  EXPECT_EQ(bob["gpu_seconds"], 360000.0);
  EXPECT_EQ(bob["max_priority"], 7);
  EXPECT_GE(bob["expires_at_ms"], before + 90 * kDayMs);
  EXPECT_LE(bob["expires_at_ms"], absl::ToUnixMillis(absl::Now()) + 90 * kDayMs);

  const CliResult worker = Admin({"principal", "add", "gpu01", "--role", "worker", "--cert-uri",
                                  "pelab://worker/gpu01", "--expires", "never"});
  EXPECT_EQ(worker.code, 0) << worker.err;
  EXPECT_EQ(worker.out, "");
  EXPECT_THAT(worker.err, HasSubstr("a certificate for pelab://worker/gpu01"));
  const Json shown = AdminJson({"principal", "show", "gpu01"});
  EXPECT_EQ(shown["certificate_uri"], "pelab://worker/gpu01");
  EXPECT_TRUE(shown["expires_at_ms"].is_null());
}

TEST_F(AdminTest, WrongValuesAreRefusedBeforeTheCall) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--share", "-1"},         {"--share", "nan"},    {"--gpu-seconds", "inf"},
      {"--max-slots", "-2"},     {"--max-queued", "x"}, {"--max-priority", "1001"},
      {"--expires", "tomorrow"}, {"--expires", "0d"}};
  for (const std::vector<std::string>& option : wrong) {
    std::vector<std::string> arguments = {"principal", "add", "me", "--role", "operator"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    const CliResult result = Admin(arguments);
    EXPECT_EQ(result.code, 2) << option[0] << " " << option[1];
    EXPECT_THAT(result.err, HasSubstr(option[0]));
    EXPECT_EQ(result.out, "");
  }
  EXPECT_THAT(Admin({"principal", "add", "w", "--role", "worker", "--cert-uri", "pelab://worker/w",
                     "--token-out", File("w.token")})
                  .err,
              HasSubstr("--token-out: a principal with --cert-uri"));
  EXPECT_EQ(AdminJson({"principal", "list"})["principals"].size(), 0u);
}

TEST_F(AdminTest, RefusalsOfTheCoordinatorAreSaid) {
  const CliResult first = Admin({"principal", "add", "alice", "--role", "reader"});
  EXPECT_EQ(first.code, 2);
  EXPECT_EQ(first.out, "");
  EXPECT_EQ(first.err, "pelab: the first principal must be an operator\n");
  const CliResult missing = Admin({"principal", "disable", "carol"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err, "pelab: no principal carol\n");
  EXPECT_EQ(Admin({"principal", "show", "carol"}).err,
            "pelab: no principal \"carol\"; pelab admin principal list shows all\n");
}

TEST_F(AdminTest, ChangeSetsOnlyWhatIsGiven) {
  AddMeAndAlice();
  const Json changed =
      AdminJson({"principal", "change", "alice", "--share", "2", "--role", "reader"});
  EXPECT_EQ(changed["share"], 2.0);
  EXPECT_EQ(changed["role"], "reader");
  EXPECT_TRUE(changed["max_slots"].is_null());
  const Json again =
      AdminJson({"principal", "change", "alice", "--max-slots", "4", "--max-queued", "9",
                 "--gpu-seconds", "7200", "--max-priority", "3", "--expires", "1d"});
  EXPECT_EQ(again["share"], 2.0);
  EXPECT_EQ(again["max_slots"], 4);
  EXPECT_FALSE(again["expires_at_ms"].is_null());
  const Json unlimited =
      AdminJson({"principal", "change", "alice", "--max-slots", "0", "--expires", "never"});
  EXPECT_TRUE(unlimited["max_slots"].is_null());
  EXPECT_EQ(unlimited["max_queued"], 9);
  EXPECT_TRUE(unlimited["expires_at_ms"].is_null());
  const CliResult nothing = Admin({"principal", "change", "alice"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("nothing to change; give --role, --expires"));
}

TEST_F(AdminTest, DisablesAndEnables) {
  AddMeAndAlice();
  EXPECT_THAT(Admin({"principal", "disable", "alice"}).out, HasSubstr("state      disabled\n"));
  EXPECT_EQ(AdminJson({"principal", "show", "alice"})["state"], "disabled");
  EXPECT_EQ(AdminJson({"principal", "enable", "alice"})["state"], "active");
}

TEST_F(AdminTest, ListsInEveryForm) {
  EXPECT_EQ(Admin({"principal", "list"}).out,
            "no principals: everybody who reaches the coordinator may do everything\n");
  AddMeAndAlice();
  EXPECT_THAT(Admin({"principal", "list"}).out, HasSubstr("alice  submitter  token  never"));
  const CliResult lines = Admin({"principal", "list", "--output", "jsonl"});
  EXPECT_EQ(Json::parse(lines.out.substr(0, lines.out.find('\n')))["name"], "alice");
  EXPECT_THAT(Admin({"principal", "list", "--output", "csv"}).out,
              HasSubstr("\r\nalice,submitter,active,,1700000000000,,false,0,,0,,"));
}

TEST_F(AdminTest, WhoAmI) {
  EXPECT_EQ(Admin({"whoami"}).out,
            "the coordinator at " + service_->address() +
                " asks nobody who they are: everybody who reaches it may do everything\n");
  EXPECT_TRUE(AdminJson({"whoami"})["principal"].is_null());
  EXPECT_THAT(Admin({"whoami", "--output", "csv"}).out, HasSubstr("max_priority\r\n"));
  AddMeAndAlice();
  EXPECT_THAT(Admin({"whoami"}).out, HasSubstr("role       operator\n"));
  EXPECT_EQ(AdminJson({"whoami"})["principal"]["name"], "me");
}

TEST_F(AdminTest, ANewTokenKeepsTheEndOfItsPrincipal) {
  AddMeAndAlice();
  const Json before = AdminJson({"principal", "change", "alice", "--expires", "30d"});
  const CliResult rotated = Admin({"token", "rotate", "alice"});
  EXPECT_EQ(rotated.out, "token-of-alice-2\n");
  EXPECT_EQ(rotated.err,
            "pelab: alice has a new token, which is shown only now; the previous one stays valid "
            "for an hour, or until --revoke ends it\n");
  EXPECT_EQ(AdminJson({"principal", "show", "alice"})["expires_at_ms"], before["expires_at_ms"]);
  const Json extended = AdminJson({"token", "rotate", "alice", "--expires", "never"});
  EXPECT_TRUE(extended["expires_at_ms"].is_null());
  EXPECT_EQ(extended["token"], "token-of-alice-3");
}

TEST_F(AdminTest, AStolenTokenIsRevoked) {
  AddMeAndAlice();
  const CliResult rotated =
      Admin({"token", "rotate", "alice", "--revoke", "--token-out", File("alice.token")});
  EXPECT_EQ(rotated.out, "");
  EXPECT_THAT(rotated.err, HasSubstr("its earlier tokens are not valid any more"));
  EXPECT_EQ(*ReadFile(File("alice.token"), 100), "token-of-alice-2-revoked\n");
}

TEST_F(AdminTest, NoTokenForWhomItWouldNotServe) {
  AddMeAndAlice();
  v1::Principal expired;
  expired.set_name("bob");
  expired.set_role(v1::ROLE_READER);
  expired.set_expires_at_ms(1'700'000'000'000);
  service_->PutPrincipal(expired);
  const CliResult refused = Admin({"token", "rotate", "bob", "--token-out", File("bob.token")});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("bob has expired at 2023-11-14 22:13:20 UTC; give --expires"));
  EXPECT_FALSE(std::filesystem::exists(File("bob.token")));
  EXPECT_EQ(Admin({"token", "rotate", "bob", "--expires", "1d"}).code, 0);
  EXPECT_EQ(Admin({"token", "rotate", "carol"}).code, 2);
}

TEST_F(AdminTest, DataCannotControlATerminal) {
  v1::Principal hostile;
  hostile.set_name("a\x1b[31m\nb");
  hostile.set_role(v1::ROLE_OPERATOR);
  hostile.set_certificate_uri("pelab://\x1b]0;x\a");
  service_->PutPrincipal(hostile);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"whoami"},
                                             {"principal", "list"},
                                             {"principal", "show", hostile.name()},
                                             {"token", "rotate", hostile.name()}}) {
    const CliResult result = Admin(command);
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.out + result.err, Not(HasSubstr("\x1b")));
  }
}

}  // namespace
}  // namespace pelab::client
