#include "tests/bench/load/latencies.h"

#include <gtest/gtest.h>

namespace pelab::load {
namespace {

TEST(Latencies, QuantilesAreValuesOfTheNearestRank) {
  Latencies latencies;
  for (int ms = 100; ms >= 1; --ms) latencies.Add(ms);
  EXPECT_EQ(latencies.count(), 100u);
  EXPECT_EQ(latencies.Quantile(0), 1);
  EXPECT_EQ(latencies.Quantile(0.99), 99);
  EXPECT_EQ(latencies.Max(), 100);
  latencies.Add(1000);  // also after the values were sorted
  EXPECT_EQ(latencies.Quantile(0.5), 51);
  EXPECT_EQ(latencies.Max(), 1000);
}

TEST(Latencies, LaterIsEachWaitAndMore) {
  Latencies waits;
  waits.Add(1);
  waits.Add(5);
  Latencies later = waits.Later(10);
  EXPECT_EQ(later.count(), 2u);
  EXPECT_EQ(later.Quantile(0), 11);
  EXPECT_EQ(later.Max(), 15);
  EXPECT_EQ(waits.Max(), 5);
}

TEST(Latencies, MergedAndCleared) {
  Latencies some;
  Latencies others;
  EXPECT_EQ(some.Quantile(0.99), 0);
  some.Add(3);
  others.Add(7);
  some.Merge(others);
  EXPECT_EQ(some.count(), 2u);
  EXPECT_EQ(some.Max(), 7);
  some.Clear();
  EXPECT_EQ(some.Max(), 0);
}

}  // namespace
}  // namespace pelab::load
