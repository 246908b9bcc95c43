#include "worker/trainer/kernels/dropout/dropout_mask.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace pelab::trainer {
namespace {

std::vector<float> Mask(std::uint64_t key, double p, std::int64_t first, std::int64_t count) {
  std::vector<float> mask(count, -1);
  FillDropoutMask(MakeDropoutStream(key, p, 0), first, count, mask.data());
  return mask;
}

TEST(DropoutMask, IsAFunctionOfKeyAndIndexHoweverItIsCut) {
  const std::vector<float> whole = Mask(42, 0.3, 0, 1000);
  for (const std::int64_t cut : {1, 7, 16, 333, 999}) {
    std::vector<float> joined = Mask(42, 0.3, 0, cut);
    const std::vector<float> rest = Mask(42, 0.3, cut, 1000 - cut);
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(joined, whole) << "cut at " << cut;
  }
}

// Checkpoints and stored results depend on these bits: changing them changes every run with
// dropout.
TEST(DropoutMask, KeepsItsBits) {
  const std::vector<float> mask = Mask(0x0123456789abcdef, 0.5, 0, 64);
  std::uint64_t kept = 0;
  for (int i = 0; i < 64; ++i) kept |= std::uint64_t{mask[i] != 0} << i;
  std::uint64_t expected = 0;
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::uint32_t x = i ^ 0x89abcdef;
    x = (x ^ (x >> 16)) * 0x7feb352d;
    x = ((x ^ (x >> 15)) + 0x01234567) * 0x846ca68b;
    x = (x ^ (x >> 16)) * 0x9e3779b1;
    x ^= x >> 15;
    expected |= std::uint64_t{x >= 0x80000000} << i;
  }
  EXPECT_EQ(kept, expected);
}

TEST(DropoutMask, DropsAtItsRateAndKeepsTheMean) {
  constexpr std::int64_t kCount = 1 << 20;
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    const std::vector<float> mask = Mask(7, p, 0, kCount);
    std::int64_t dropped = 0;
    for (const float value : mask) {
      dropped += value == 0;
      if (value != 0) {
        ASSERT_EQ(value, static_cast<float>(1 / (1 - p)));
      }
    }
    const double deviation = std::sqrt(kCount * p * (1 - p));
    EXPECT_LE(std::abs(static_cast<double>(dropped) - kCount * p), 5 * deviation) << "p = " << p;
  }
}

// Masks of neighboring elements and of neighboring keys must be independent.
TEST(DropoutMask, IsUncorrelatedBetweenElementsAndKeys) {
  constexpr std::int64_t kCount = 1 << 18;
  const std::vector<float> mask = Mask(1000, 0.5, 0, kCount);
  const auto agreement = [&](const std::vector<float>& other, std::int64_t shift) {
    std::int64_t same = 0;
    for (std::int64_t i = 0; i + shift < kCount; ++i)
      same += (mask[i] == 0) == (other[i + shift] == 0);
    return (static_cast<double>(same) - (kCount - shift) / 2.0) / std::sqrt((kCount - shift) / 4.0);
  };
  for (const std::int64_t shift : {1, 2, 16, 128, 4096}) {
    EXPECT_LT(std::abs(agreement(mask, shift)), 5) << "elements " << shift << " apart";
  }
  for (const std::uint64_t key :
       {std::uint64_t{1001}, std::uint64_t{1000} + (std::uint64_t{1} << 32)}) {
    EXPECT_LT(std::abs(agreement(Mask(key, 0.5, 0, kCount), 0)), 5) << "key " << key;
  }
}

TEST(DropoutMask, RowsCountThePositionsThatAreSkipped) {
  DropoutStream stream;
  EXPECT_EQ(DropoutRow(stream, 4'000'000'000), 4'000'000'000U) << "nothing is skipped";
  for (const std::uint32_t positions : {2U, 3U, 7U, 8U, 24U, 61U, 104U, 1000U, 1024U}) {
    SkipPositions(positions, 5, &stream);
    const std::uint64_t end = (std::uint64_t{1} << 32) / positions;
    for (const std::uint64_t from : {std::uint64_t{0}, end / 2, end - 3000}) {
      for (std::uint64_t row = from; row < from + 3000; ++row) {
        const auto expected = static_cast<std::uint32_t>(row + row / positions * 5);
        ASSERT_EQ(DropoutRow(stream, static_cast<std::int64_t>(row)), expected)
            << row << " of " << positions;
      }
    }
  }
}

}  // namespace
}  // namespace pelab::trainer
