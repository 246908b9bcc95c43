#include "server/recent_connections.h"

#include <gtest/gtest.h>

namespace pelab {
namespace {

TEST(RecentConnections, AnAddressHasOnlySoMany) {
  RecentConnections recent({.of_address = 2, .in_all = 10, .time = absl::Seconds(5)});
  EXPECT_TRUE(recent.Admit("a", absl::Seconds(0)));
  EXPECT_TRUE(recent.Admit("a", absl::Seconds(1)));
  EXPECT_FALSE(recent.Admit("a", absl::Seconds(2)));
  EXPECT_TRUE(recent.Admit("b", absl::Seconds(2))) << "another address keeps its own";
  // Those that were refused do not count, and the first one has ended.
  EXPECT_FALSE(recent.Admit("a", absl::Milliseconds(4'999)));
  EXPECT_TRUE(recent.Admit("a", absl::Seconds(5)));
  EXPECT_FALSE(recent.Admit("a", absl::Seconds(5)));
  EXPECT_TRUE(recent.Admit("a", absl::Seconds(6)));
}

TEST(RecentConnections, AllAddressesTogetherHaveOnlySoMany) {
  RecentConnections recent({.of_address = 2, .in_all = 3, .time = absl::Seconds(5)});
  EXPECT_TRUE(recent.Admit("a", absl::Seconds(0)));
  EXPECT_TRUE(recent.Admit("b", absl::Seconds(1)));
  EXPECT_TRUE(recent.Admit("c", absl::Seconds(2)));
  EXPECT_FALSE(recent.Admit("d", absl::Seconds(3)));
  EXPECT_TRUE(recent.Admit("d", absl::Seconds(5)));
  EXPECT_FALSE(recent.Admit("a", absl::Seconds(5)));
}

}  // namespace
}  // namespace pelab
