// The command line of the certificate authority; tests/unit/core/access has its certificates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/render/json.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/client/cli_fixture.h"

namespace pelab::client {
namespace {

using render::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class AdminCaTest : public ::testing::Test {
 protected:
  CliResult Ca(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"admin", "ca"});
    return RunCli(std::move(arguments));
  }
  Json CaJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--output", "json"});
    return Json::parse(Ca(std::move(arguments)).out, nullptr, false);
  }

  TempDir dir_;
  const std::string ca_ = dir_ / "ca";
  const std::string out_ = dir_ / "out";
};

TEST_F(AdminCaTest, InitMakesAnAuthorityOnce) {
  const CliResult made = Ca({"init", ca_, "--name", "our lab"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("made the authority our lab, valid until 20"),
                              HasSubstr(ca_ + "/ca.pem: "), HasSubstr(ca_ + "/ca.key: ")));
  const CliResult again = Ca({"init", ca_});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("ca.key: file exists"));
}

TEST_F(AdminCaTest, IssueSaysWhatItMadeAndWhatComesNext) {
  ASSERT_EQ(Ca({"init", ca_}).code, 0);
  const CliResult worker = Ca({"issue", ca_, "worker", "gpu01", "--out", out_});
  EXPECT_EQ(worker.code, 0) << worker.err;
  EXPECT_THAT(worker.out, AllOf(HasSubstr(out_ + "/gpu01.pem: "), HasSubstr(out_ + "/gpu01.key: "),
                                HasSubstr("for URI:pelab://worker/gpu01\n"),
                                HasSubstr("`pelab admin principal add gpu01 --role worker "
                                          "--cert-uri pelab://worker/gpu01`")));
  EXPECT_THAT(Ca({"issue", ca_, "client", "alice", "--out", out_}).out,
              HasSubstr("--cert-uri pelab://principal/alice`"));
  const absl::Time before = absl::Now();
  const Json server =
      CaJson({"issue", ca_, "server", "host0", "10.0.0.7", "--days", "30", "--out", out_});
  EXPECT_EQ(server["certificate"], out_ + "/host0.pem");
  EXPECT_EQ(server["names"], Json({"DNS:host0", "IP:10.0.0.7"}));
  EXPECT_NEAR(server["not_after_ms"].get<double>(),
              static_cast<double>(absl::ToUnixMillis(before + absl::Hours(24 * 30))), 60'000);
  EXPECT_TRUE(std::filesystem::exists(out_ + "/host0.key"));
}

TEST_F(AdminCaTest, RefusalsSayWhatIsAllowed) {
  const CliResult none = Ca({"issue", ca_, "worker", "gpu01"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("`pelab admin ca init " + ca_ + "` makes an authority"));
  ASSERT_EQ(Ca({"init", ca_, "--days", "10"}).code, 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"worker", "gpu/01"}, "invalid name \"gpu/01\""},
      {{"worker", "gpu01", "gpu02"}, "a certificate is for one principal"},
      {{"server", "host0:7470"}, "invalid host \"host0:7470\""},
      {{"worker", "gpu01", "--days", "11"}, "allowed: from 1 to 9"},
      {{"worker", "gpu01", "--days", "0"}, "allowed: from 1 to 36500"}};
  for (const auto& [arguments, message] : wrong) {
    std::vector<std::string> all = {"issue", ca_};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), {"--out", out_});
    const CliResult result = Ca(all);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr(message));
  }
  EXPECT_FALSE(std::filesystem::exists(out_));
}

}  // namespace
}  // namespace pelab::client
