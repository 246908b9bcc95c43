// Vectors of 16 floats in one, two or four registers: each type gives what its lanes give one by
// one. The types do not depend on the instruction set, so all are tested on every processor.
#include "worker/trainer/kernels/vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "worker/trainer/kernels/attention/attention_cpu_tiles.h"

namespace pelab::trainer {
namespace {

template <class Floats>
class VectorsTest : public ::testing::Test {
 protected:
  static std::vector<float> RandomLanes(std::int64_t count = kLanes, float low = -2,
                                        float high = 2) {
    static std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> lanes(count);
    for (float& lane : lanes) lane = uniform(random);
    return lanes;
  }
  static std::vector<float> LanesOf(const Floats& x) {
    std::vector<float> lanes(kLanes);
    Store(x, lanes.data());
    return lanes;
  }
};
using Types = ::testing::Types<Floats16, Floats2x8, Floats4x4>;
TYPED_TEST_SUITE(VectorsTest, Types);

TYPED_TEST(VectorsTest, ArithmeticIsThatOfEachLane) {
  const auto a = this->RandomLanes(), b = this->RandomLanes(kLanes, 1, 2);
  const auto x = Load<TypeParam>(a.data()), y = Load<TypeParam>(b.data());
  const auto sum = this->LanesOf(x + y), ratio = this->LanesOf(x / y);
  const auto scaled = this->LanesOf(3.0f - x * 2.0f), negative = this->LanesOf(-x);
  const auto larger = this->LanesOf(Larger(x, y - 1.5f));
  for (std::int64_t i = 0; i < kLanes; ++i) {
    EXPECT_EQ(sum[i], a[i] + b[i]);
    EXPECT_EQ(ratio[i], a[i] / b[i]);
    EXPECT_FLOAT_EQ(scaled[i], 3 - 2 * a[i]);
    EXPECT_EQ(negative[i], -a[i]);
    EXPECT_EQ(larger[i], std::max(a[i], b[i] - 1.5f));
    EXPECT_EQ(this->LanesOf(Lanes<TypeParam>())[i], static_cast<float>(i));
  }
}

TYPED_TEST(VectorsTest, ExpIsThatOfTheLibrary) {
  auto lanes = this->RandomLanes(kLanes, -86, 0);
  lanes[3] = 0, lanes[12] = -87.5f, lanes[15] = -INFINITY;
  const auto powers = this->LanesOf(Exp(Load<TypeParam>(lanes.data())));
  for (std::int64_t i = 0; i < kLanes; ++i) {
    const double expected = lanes[i] < -87 ? 0 : std::exp(double{lanes[i]});
    EXPECT_NEAR(powers[i], expected, 3e-7 * expected) << lanes[i];
  }
}

TYPED_TEST(VectorsTest, SumsArePairByPairAndTheLargestIsFound) {
  for (int round = 0; round < 20; ++round) {
    auto lanes = this->RandomLanes();
    const auto x = Load<TypeParam>(lanes.data());
    EXPECT_EQ(Largest(x), *std::max_element(lanes.begin(), lanes.end()));
    for (const std::int64_t distance : {8, 4, 2, 1}) {
      for (std::int64_t i = 0; i < distance; ++i) lanes[i] += lanes[i + distance];
    }
    EXPECT_EQ(Sum(x), lanes[0]);
  }
}

TYPED_TEST(VectorsTest, DropoutIsThatOfEachElement) {
  const DropoutStream stream = {0x1234567, 0x89abcdef, 1U << 30, 4.0f / 3, 77};
  for (const std::uint32_t index : {0U, 1000U, 0xfffffff5U}) {
    const auto factors = this->LanesOf(DropoutFactors<TypeParam>(stream, index));
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      EXPECT_EQ(factors[i], DropoutFactor(stream, index + i));
    }
  }
}

TYPED_TEST(VectorsTest, PairsTurnAsComplexNumbers) {
  const auto a = this->RandomLanes(), b = this->RandomLanes();
  const auto x = Load<TypeParam>(a.data()), by = Load<TypeParam>(b.data());
  for (const float sign : {1.0f, -1.0f}) {
    const auto turned = this->LanesOf(TurnVector(x, by, sign < 0));
    for (std::int64_t i = 0; i < kLanes; i += 2) {
      EXPECT_NEAR(turned[i], a[i] * b[i] - sign * a[i + 1] * b[i + 1], 1e-6);
      EXPECT_NEAR(turned[i + 1], a[i + 1] * b[i] + sign * a[i] * b[i + 1], 1e-6);
    }
  }
}

TYPED_TEST(VectorsTest, TransposesTheColumnsThatAreNeeded) {
  constexpr std::int64_t kRows = 2 * kLanes, kColumns = 3 * kLanes;
  const auto from = this->RandomLanes(kRows * kColumns);
  for (const std::int64_t width : {1, 4, 5, 8, 12, 16, 20, 24, 37, 48}) {
    std::vector<float> to(from.size(), 9);
    Transpose<TypeParam>(from.data(), kRows, kColumns, width, to.data());
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        ASSERT_EQ(to[j * kRows + i], from[i * kColumns + j]) << i << ", " << j << " of " << width;
      }
    }
  }
}

TYPED_TEST(VectorsTest, ChannelsTakeTheFewestVectors) {
  const auto check = [](std::int64_t width, std::int64_t lanes, std::int64_t padded) {
    bool called = false;
    ForChannels<TypeParam>(width, [&]<class Vector>(std::int64_t n) PELAB_INLINE_LAMBDA {
      called = true;
      EXPECT_EQ(kLanesOf<Vector>, lanes) << width;
      EXPECT_EQ(n, padded) << width;
    });
    EXPECT_TRUE(called) << width;
  };
  for (const std::int64_t width : {1, 3, 4}) check(width, 4, 4);
  check(16, 16, 16);
  check(29, 16, 32);
  constexpr bool kWide = std::is_same_v<TypeParam, Floats16>;
  constexpr bool kNarrow = std::is_same_v<TypeParam, Floats4x4>;
  for (const std::int64_t width : {5, 7, 8}) check(width, 8, 8);
  check(12, 16, 16);
  check(20, kWide ? 16 : kNarrow ? 4 : 8, kWide ? 32 : kNarrow ? 20 : 24);
  check(24, kWide ? 16 : 8, kWide ? 32 : 24);
}

// Sums of products, with padding of the channels in vectors of each width.
TYPED_TEST(VectorsTest, ProductsOfAnyWidthAreThoseOfTheirElements) {
  constexpr std::int64_t kRows = 5, kTerms = 7;
  for (const std::int64_t width : {1, 4, 6, 8, 12, 16, 20, 24, 32, 40}) {
    const std::int64_t stride = Padded(width);
    const auto a = this->RandomLanes(kRows * kTerms), b = this->RandomLanes(kTerms * stride);
    std::vector<float> c(kRows * stride, 9);
    ForChannels<TypeParam>(width, [&]<class Vector>(std::int64_t n) PELAB_INLINE_LAMBDA {
      Product<Vector>(kRows, n, a.data(), kTerms, 1, b.data(), stride, c.data(), stride,
                      [&](std::int64_t, std::int64_t) PELAB_INLINE_LAMBDA {
                        return Extent{n, 0, kTerms};
                      });
    });
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < kTerms; ++k) sum += a[i * kTerms + k] * b[k * stride + j];
        ASSERT_NEAR(c[i * stride + j], sum, 1e-5) << i << ", " << j << " of " << width;
      }
    }
  }
}

TYPED_TEST(VectorsTest, PartsOfAVectorAreFollowedByZeros) {
  const auto lanes = this->RandomLanes();
  for (std::int64_t count = 0; count <= kLanes; ++count) {
    const auto x = LoadChannels<TypeParam>(lanes.data(), count);
    std::vector<float> to(kLanes, 9);
    StoreChannels(x, count, to.data());
    for (std::int64_t i = 0; i < kLanes; ++i) {
      EXPECT_EQ(this->LanesOf(x)[i], i < count ? lanes[i] : 0);
      EXPECT_EQ(to[i], i < count ? lanes[i] : 9);
    }
  }
}

}  // namespace
}  // namespace pelab::trainer
