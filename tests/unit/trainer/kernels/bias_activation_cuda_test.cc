// The kernels of bias_activation.h against its formulae in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/trainer/kernels/random_rows_for_test.h"
#include "worker/trainer/kernels/bias_activation_kernels.cuh"
#include "worker/trainer/kernels/block_sums_kernels.cuh"

namespace pelab::trainer {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Options {
  std::int64_t rows = 9;
  std::int64_t width = 40;
  bool gelu = false;
  bool dropout = true;
  bool in_place = false;
};

double Phi(double u) { return 0.5 * std::erfc(-u / std::sqrt(2.0)); }
double Activation(bool gelu, double u) { return gelu ? u * Phi(u) : std::max(u, 0.0); }
double Slope(bool gelu, double u) {
  if (!gelu) return u > 0 ? 1 : 0;
  return Phi(u) + u * std::exp(-u * u / 2) / std::sqrt(2 * std::acos(-1.0));
}

template <int kVector>
cuda_emulation::Dim3 GridOf(const Options& o) {
  return {static_cast<unsigned>((o.width + kActivationColumns<kVector> - 1) /
                                kActivationColumns<kVector>),
          static_cast<unsigned>(NormBlocks(o.rows))};
}

template <class Element>
void ExpectBothWays(const Options& o) {
  const std::int64_t count = o.rows * o.width;
  const auto product = RandomElements<Element>(count, 1, 2);
  const auto bias = RandomElements<float>(o.width, 2);
  std::vector<Element> to_out = RandomElements<Element>(count, 3), out(count), to_product(count);
  std::vector<float> partial(NormBlocks(o.rows) * o.width, kNan), to_bias(o.width, kNan);
  BiasActivation<Element> p{o.rows, o.width, product.data(), bias.data(), o.gelu, {}, out.data()};
  if (o.dropout) p.dropout = {0x1234567, 0x89abcdef, 1U << 30, 4.0f / 3, 55};

  std::vector<double> a, dh, db(o.width);
  for (std::int64_t i = 0; i < count; ++i) {
    const double u = ToFloat(product[i]) + double{bias[i % o.width]};
    const double factor = DropoutFactor(p.dropout, static_cast<std::uint32_t>(i));
    a.push_back(factor * Activation(o.gelu, u));
    dh.push_back(factor * Slope(o.gelu, u) * ToFloat(to_out[i]));
    db[i % o.width] += dh.back();
  }

  const BiasActivationGradients<Element> g{
      to_out.data(), o.in_place ? to_out.data() : to_product.data(), partial.data()};
  const bool aligned =
      RowsAligned<Element>(o.width, p.product) && RowsAligned<float>(o.width, p.bias);
  WithActivationVector<Element>(aligned, [&](auto vector) {
    cuda_emulation::Launch(GridOf<vector.value>(o), {kActivationThreads}, 0,
                           BiasActivationForwardKernel<Element, vector.value>, p);
    cuda_emulation::Launch(GridOf<vector.value>(o), {kActivationThreads}, 0,
                           BiasActivationBackwardKernel<Element, vector.value>, p, g);
  });
  const BlockSums<1> sums{partial.data(), NormBlocks(o.rows), o.width, {to_bias.data()}};
  cuda_emulation::Launch({static_cast<unsigned>((o.width + 31) / 32), 1}, {kWarpLanes, kSumSlices},
                         0, BlockSumsKernel<1>, sums);
  ExpectClose(out, a, "out");
  ExpectClose(o.in_place ? to_out : to_product, dh, "to product");
  ExpectClose(to_bias, db, "to bias");
}

template <class Element>
class BiasActivationCuda : public testing::Test {};
using Elements = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(BiasActivationCuda, Elements);

TYPED_TEST(BiasActivationCuda, EveryWidth) {
  for (const std::int64_t width : {1, 4, 7, 8, 33, 100, 256, 512, 519, 1032}) {
    SCOPED_TRACE(width);
    ExpectBothWays<TypeParam>({.rows = 3, .width = width});
    ExpectBothWays<TypeParam>({.rows = 3, .width = width, .gelu = true});
  }
}

TYPED_TEST(BiasActivationCuda, EveryOptionOnAndOff) {
  for (int bits = 0; bits < 8; ++bits) {
    SCOPED_TRACE(bits);
    ExpectBothWays<TypeParam>(
        {.gelu = (bits & 1) != 0, .dropout = (bits & 2) != 0, .in_place = (bits & 4) != 0});
  }
}

TYPED_TEST(BiasActivationCuda, ManyRows) {
  ExpectBothWays<TypeParam>({.rows = 2 * kNormBlockRows + 3, .width = 24});
}

// Or a run that has failed would go on as if nothing had happened.
TEST(BiasActivationCuda, NotANumberStaysSo) {
  const float product[4] = {kNan, 1, -1, 0}, bias[4] = {};
  float out[4] = {};
  const BiasActivation<float> p{1, 4, product, bias, false, {}, out};
  cuda_emulation::Launch({1, 1}, {kActivationThreads}, 0, BiasActivationForwardKernel<float, 1>, p);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 0);
}

}  // namespace
}  // namespace pelab::trainer
