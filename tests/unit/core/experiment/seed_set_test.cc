#include "core/experiment/seed_set.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/experiment/sweep.h"

namespace pelab::experiment {
namespace {

SeedSet Of(std::initializer_list<SeedSet::Range> ranges) {
  SeedSet set;
  for (const SeedSet::Range& range : ranges) EXPECT_FALSE(set.Add(range));
  return set;
}

TEST(SeedSet, KeepsTheDocumentsOrder) {
  const SeedSet set = Of({{7, 9}, {0, 1}, {5, 5}});
  ASSERT_EQ(set.count(), 6u);
  std::vector<std::int64_t> seeds;
  for (std::uint64_t i = 0; i < set.count(); ++i) seeds.push_back(set.At(i));
  EXPECT_EQ(seeds, (std::vector<std::int64_t>{7, 8, 9, 0, 1, 5}));
}

TEST(SeedSet, RefusesWhatOverlaps) {
  SeedSet set = Of({{10, 20}, {30, 40}});
  EXPECT_EQ(set.Add({20, 25}), 20);
  EXPECT_EQ(set.Add({5, 10}), 10);
  EXPECT_EQ(set.Add({0, 100}), 10);
  EXPECT_EQ(set.Add({15, 15}), 15);
  EXPECT_EQ(set.Add({25, 30}), 30);
  EXPECT_EQ(set.Add({21, 29}), std::nullopt);
  EXPECT_EQ(set.count(), 31u);
}

TEST(SeedSet, ContainsOverlapsCovers) {
  const SeedSet set = Of({{10, 20}, {30, 40}});
  EXPECT_TRUE(set.Contains(10));
  EXPECT_TRUE(set.Contains(40));
  EXPECT_FALSE(set.Contains(25));
  EXPECT_FALSE(set.Contains(9));
  EXPECT_TRUE(set.Overlaps(Of({{0, 10}})));
  EXPECT_FALSE(set.Overlaps(Of({{21, 29}})));
  EXPECT_TRUE(set.Covers(Of({{32, 33}, {10, 12}})));
  EXPECT_FALSE(set.Covers(Of({{20, 21}})));
  EXPECT_TRUE(Of({{0, 4}, {5, 9}}).Covers(Of({{2, 7}})));
}

TEST(SeedSet, MissingIsWhatIsNotHere) {
  const SeedSet set = Of({{30, 40}, {10, 20}});
  const auto missing = [&](std::int64_t first, std::int64_t last) {
    std::string text;
    for (const SeedSet::Range& range : set.Missing({first, last})) {
      text += std::to_string(range.first) + ".." + std::to_string(range.last) + " ";
    }
    return text;
  };
  EXPECT_EQ(missing(0, 50), "0..9 21..29 41..50 ");
  EXPECT_EQ(missing(10, 40), "21..29 ");
  EXPECT_EQ(missing(15, 35), "21..29 ");
  EXPECT_EQ(missing(12, 18), "");
  EXPECT_EQ(missing(21, 29), "21..29 ");
  EXPECT_EQ(missing(20, 21), "21..21 ");
  EXPECT_EQ(missing(0, 5), "0..5 ");
  EXPECT_EQ(missing(45, 45), "45..45 ");
}

TEST(SeedSet, TheLargestSeeds) {
  const SeedSet set = Of({{0, kMaxSeed}});
  EXPECT_EQ(set.count(), static_cast<std::uint64_t>(kMaxSeed) + 1);
  EXPECT_EQ(set.At(static_cast<std::uint64_t>(kMaxSeed)), kMaxSeed);
}

TEST(ParseSeeds, NumbersAndRanges) {
  EXPECT_EQ(ParseSeeds("3").range->last, 3);
  EXPECT_EQ(ParseSeeds("0..4").range->last, 4);
  EXPECT_EQ(ParseSeeds("9007199254740991").range->first, kMaxSeed);
  for (const char* bad : {"", "-1", "1.5", "a", "1..", "..1", "1...3", "0..4..5",
                          "9007199254740992", "1 ..2", "0x1"}) {
    EXPECT_FALSE(ParseSeeds(bad).range) << bad;
  }
  EXPECT_EQ(ParseSeeds("5..1").problem, "range 5..1 is empty: the first must not exceed the last");
}

}  // namespace
}  // namespace pelab::experiment
