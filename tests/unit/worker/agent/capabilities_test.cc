#include "worker/agent/capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::agent {
namespace {

TEST(Capabilities, OwnEncodingsAreTakenOut) {
  Capabilities capabilities;
  capabilities.cuda = false;
  capabilities.environment = {{"A", "b"}};
  capabilities.json = R"({"pes":[{"name":"own","version":1},{"name":"rope","version":2},3],"x":1})";
  const Capabilities without = WithoutOwnEncodings(capabilities);
  EXPECT_EQ(without.json, R"({"pes":[{"name":"rope","version":2},3],"x":1})");
  EXPECT_FALSE(without.cuda);
  EXPECT_THAT(without.environment, testing::SizeIs(1));
}

TEST(Capabilities, ListsThatAreMissingStayMissing) {
  for (const char* json : {"{}", R"({"pes":"all"})"}) {
    EXPECT_EQ(WithoutOwnEncodings({.json = json, .environment = {}}).json, json);
  }
}

}  // namespace
}  // namespace pelab::agent
