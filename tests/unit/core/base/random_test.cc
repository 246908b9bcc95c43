#include "core/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace pelab {
namespace {

using Block = std::array<std::uint32_t, 4>;

// The known answers for philox4x32-10 in tests/kat_vectors of Random123 1.14.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRandom, WalkAndAddressAgree) {
  CounterRandom walk(7, "test", 3);
  const CounterRandom addressed(7, "test", 3);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(walk.Next(), addressed.At(i)) << i;
}

TEST(CounterRandom, IndexUsesAllItsBits) {
  const CounterRandom random(7, "test");
  std::set<std::uint64_t> seen;
  for (int bit = 0; bit < 64; ++bit) seen.insert(random.At(std::uint64_t{1} << bit));
  seen.insert(random.At(0));
  EXPECT_EQ(seen.size(), 65u);
}

TEST(CounterRandom, SeedPurposeAndStreamSeparate) {
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const char* purpose : {"data", "init", "dropout"}) {
      for (std::uint64_t stream = 0; stream < 20; ++stream) {
        first.insert(CounterRandom(seed, purpose, stream).At(0));
      }
    }
  }
  EXPECT_EQ(first.size(), 20u * 3 * 20);
}

double ChiSquare(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// A fair generator stays within these bounds for all but about one of 10^6 seeds; the seed here is
// fixed.
TEST(CounterRandom, BelowIsUniform) {
  for (const std::uint32_t bound : {2u, 3u, 7u, 70u, 569u}) {
    CounterRandom random(1, "below", bound);
    constexpr int kPerBin = 2000;
    std::vector<int> counts(bound);
    for (std::uint32_t i = 0; i < bound * kPerBin; ++i) {
      const std::uint32_t value = random.Below(bound);
      ASSERT_LT(value, bound);
      ++counts[value];
    }
    const double degrees = bound - 1;
    EXPECT_LT(ChiSquare(counts, kPerBin), degrees + 5 * std::sqrt(2 * degrees) + 20) << bound;
  }
}

// The bound is two thirds of 2^32. A generator that takes a remainder would put two thirds of its
// values below half the bound.
TEST(CounterRandom, BelowIsUnbiasedForLargeBounds) {
  CounterRandom random(2, "below");
  constexpr std::uint32_t kBound = 2863311530u;
  constexpr int kDraws = 40000;
  int low = 0;
  for (int i = 0; i < kDraws; ++i) low += random.Below(kBound) < kBound / 2 ? 1 : 0;
  EXPECT_NEAR(low, kDraws / 2, 5 * std::sqrt(kDraws / 4.0));
}

TEST(CounterRandom, BelowOneIsZero) {
  CounterRandom random(3, "below");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(random.Below(1), 0u);
}

TEST(CounterRandom, UniformAndNormalMoments) {
  CounterRandom random(4, "moments");
  constexpr int kDraws = 50000;
  double uniform = 0, normal = 0, square = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.Uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    uniform += u;
    const double z = random.Normal();
    ASSERT_TRUE(std::isfinite(z));
    normal += z;
    square += z * z;
  }
  EXPECT_NEAR(uniform / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(normal / kDraws, 0.0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(square / kDraws, 1.0, 5 * std::sqrt(2.0 / kDraws));
}

}  // namespace
}  // namespace pelab
