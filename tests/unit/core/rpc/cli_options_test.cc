#include "core/rpc/cli_options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace pelab::rpc {
namespace {

struct Ended {
  std::optional<int> status;
  std::string err;
};

Ended Parse(std::vector<const char*> arguments) {
  CLI::App app("Trains.", "pelab-worker");
  std::string server;
  app.add_option("--server", server)->required();
  app.add_flag("--tls");
  arguments.insert(arguments.begin(), "pelab-worker");
  testing::internal::CaptureStderr();
  const auto status =
      ParseFlags(app, static_cast<int>(arguments.size()), const_cast<char**>(arguments.data()));
  return {status, testing::internal::GetCapturedStderr()};
}

TEST(ParseFlags, GoesOnAfterGoodFlags) {
  const Ended ended = Parse({"--server", "unix:x", "--tls"});
  EXPECT_EQ(ended.status, std::nullopt);
  EXPECT_EQ(ended.err, "");
}

TEST(ParseFlags, NamesWhatItDoesNotKnowInTheOrderInWhichItWasTyped) {
  const Ended one = Parse({"--server", "unix:x", "--tsl"});
  EXPECT_EQ(one.status, 2);
  EXPECT_EQ(one.err, "pelab-worker: unexpected argument: --tsl (see pelab-worker --help)\n");
  EXPECT_EQ(Parse({"--server", "unix:x", "--slots", "3"}).err,
            "pelab-worker: unexpected arguments: --slots 3 (see pelab-worker --help)\n");
}

TEST(ParseFlags, NamesWhatIsMissing) {
  const Ended ended = Parse({"--tls"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.err, "pelab-worker: --server is required (see pelab-worker --help)\n");
  EXPECT_EQ(Parse({"--sever", "unix:x"}).err,
            "pelab-worker: unexpected arguments: --sever unix:x (see pelab-worker --help)\n");
}

}  // namespace
}  // namespace pelab::rpc
