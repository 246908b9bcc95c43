#include "core/rpc/fleet_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace pelab::rpc {
namespace {

using testing::HasSubstr;

v1::Hello HelloOf(int protocol, int protocol_max) {
  v1::Hello hello;
  hello.set_protocol(protocol);
  hello.set_protocol_max(protocol_max);
  return hello;
}

TEST(FleetProtocolTest, AWorkerOfVersionOneSaysOneNumber) {
  EXPECT_EQ(ToString(ProtocolsOf(HelloOf(1, 0))), "1");
  EXPECT_EQ(ToString(ProtocolsOf(HelloOf(1, 2))), "1 to 2");
  EXPECT_EQ(ToString(ProtocolsOf(HelloOf(3, 2))), "3") << "a range from large to small is one";
  EXPECT_EQ(ToString(ProtocolsOf(HelloOf(0, 0))), "0");
  EXPECT_EQ(ToString(ProtocolsOf(HelloOf(2, -5))), "2");
}

TEST(FleetProtocolTest, TheNewestCommonVersionIsChosen) {
  struct Case {
    ProtocolRange worker, coordinator;
    int chosen;
  };
  for (const auto& [worker, coordinator, chosen] :
       {Case{{1, 1}, {1, 2}, 1}, Case{{1, 2}, {1, 1}, 1}, Case{{1, 2}, {1, 2}, 2},
        Case{{2, 3}, {1, 2}, 2}, Case{{1, 9}, {2, 3}, 3}, Case{{2, 2}, {1, 3}, 2}}) {
    EXPECT_EQ(ChooseProtocol(worker, coordinator).value_or(-1), chosen)
        << ToString(worker) << " / " << ToString(coordinator);
  }
}

TEST(FleetProtocolTest, WithoutACommonVersionTheOlderProgramIsNamed) {
  EXPECT_THAT(std::string(ChooseProtocol({1, 1}, {2, 3}).status().message()),
              HasSubstr("the worker speaks protocol 1 and the coordinator 2 to 3; upgrade the "
                        "worker"));
  EXPECT_THAT(std::string(ChooseProtocol({3, 4}, {1, 2}).status().message()),
              HasSubstr("speaks protocol 3 to 4 and the coordinator 1 to 2; upgrade the "
                        "coordinator"));
  EXPECT_FALSE(ChooseProtocol({0, 0}, kFleetProtocols).ok());
  EXPECT_FALSE(ChooseProtocol({-7, -7}, kFleetProtocols).ok());
}

TEST(FleetProtocolTest, ThisReleaseSpeaksTheVersionBefore) {
  EXPECT_GE(kFleetProtocols.newest - kFleetProtocols.oldest, 1);
}

}  // namespace
}  // namespace pelab::rpc
