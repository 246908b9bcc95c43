// The kernels of bias_activation.h against its formulas in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/worker/trainer/kernels/activation/bias_activation_fixture.h"
#include "worker/trainer/kernels/activation/bias_activation_kernels.cuh"
#include "worker/trainer/kernels/attention/attention_sums.cuh"

namespace pelab::trainer::bias_activation_cuda_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Options = BiasActivationOptions;

double Phi(double u) { return 0.5 * std::erfc(-u / std::sqrt(2.0)); }
double Activation(bool gelu, double u) { return gelu ? u * Phi(u) : std::max(u, 0.0); }
double Slope(bool gelu, double u) {
  if (!gelu) return u > 0 ? 1 : 0;
  return Phi(u) + u * std::exp(-u * u / 2) / std::sqrt(2 * std::acos(-1.0));
}

template <int kVector, class Element>
cuda_emulation::Dim3 GridOf(const BiasActivation<Element>& p) {
  return {static_cast<unsigned>((p.width + kActivationColumns<kVector> - 1) /
                                kActivationColumns<kVector>),
          static_cast<unsigned>(NormBlocks(p.rows)), static_cast<unsigned>(p.members.count)};
}

// Runs forward and backward. Returns the sums for the bias of each member. `aligned`: 16-byte
// accesses fit the problem.
template <class Element>
std::vector<float> Run(const BiasActivation<Element>& p, const BiasActivationGradients<Element>& g,
                       bool aligned) {
  WithActivationVector<Element>(aligned, [&](auto vector) {
    cuda_emulation::Launch(GridOf<vector.value>(p), {kActivationThreads}, 0,
                           BiasActivationForwardKernel<Element, vector.value>, p);
    cuda_emulation::Launch(GridOf<vector.value>(p), {kActivationThreads}, 0,
                           BiasActivationBackwardKernel<Element, vector.value>, p, g);
  });
  std::vector<float> to_bias(p.members.count * p.width, kNan);
  cuda_emulation::Launch({static_cast<unsigned>((p.width + kSumColumns - 1) / kSumColumns), 1,
                          static_cast<unsigned>(p.members.count)},
                         {kSumColumns, kSumLanes}, 0, SumRowsKernel<float>, g.partial,
                         NormBlocks(p.rows), p.width, to_bias.data());
  return to_bias;
}

template <class Element>
void ExpectBothWays(const Options& o) {
  BiasActivationCase<Element> made(o);
  std::vector<double> a, dh, db(o.width);
  for (std::int64_t i = 0; i < o.rows * o.width; ++i) {
    const double u = ToFloat(made.product[i]) + double{made.bias[i % o.width]};
    const std::int64_t row = i / o.width;
    const std::int64_t index = i + row / o.positions * o.skipped * o.width;
    const double factor = DropoutFactor(made.p.dropout, static_cast<std::uint32_t>(index));
    a.push_back(factor * Activation(o.gelu, u));
    dh.push_back(factor * Slope(o.gelu, u) * ToFloat(made.to_out[i]));
    db[i % o.width] += dh.back();
  }
  const std::vector<float> to_bias = Run(made.p, made.g, Aligned(made.p));
  ExpectClose(made.out, a, "out");
  ExpectClose(o.in_place ? made.to_out : made.to_product, dh, "to product");
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
  ExpectBothWays<TypeParam>(
      {.rows = 2 * kNormBlockRows + 3, .width = 24, .positions = 7, .skipped = 3});
}

// Expects that each member's part has the same bits as the same kernels on it alone. `beyond`: see
// MemberParameters.
template <class Element>
void ExpectMembersAsAlone(const Options& o, std::int64_t beyond) {
  BiasActivationMembers<Element> made(o, beyond);
  const bool aligned = Aligned(made.p);
  EXPECT_EQ(aligned, beyond % 4 == 0 && o.width % (16 / sizeof(Element)) == 0);
  std::vector<float> expected;
  const std::vector<float> to_bias = Run(made.p, made.g, aligned);
  for (const auto& one : made.alone) Append(Run(one->p, one->g, aligned), &expected);
  made.ExpectAsAlone();
  ExpectSameBits(to_bias, expected, "to bias");
}

TYPED_TEST(BiasActivationCuda, MembersOfEveryWidth) {
  for (const std::int64_t width : {1, 4, 7, 8, 33, 100, 256, 512, 519}) {
    for (const std::int64_t beyond : {4, 1, 2}) {
      SCOPED_TRACE(testing::Message() << width << ", " << beyond << " further");
      ExpectMembersAsAlone<TypeParam>({.rows = 3, .width = width}, beyond);
    }
  }
}

TYPED_TEST(BiasActivationCuda, MembersWithEveryOptionOnAndOff) {
  for (int bits = 0; bits < 8; ++bits) {
    for (const std::int64_t rows : {kNormBlockRows, 2 * kNormBlockRows + 3}) {
      SCOPED_TRACE(testing::Message() << bits << ", " << rows << " rows");
      ExpectMembersAsAlone<TypeParam>({.rows = rows,
                                       .gelu = (bits & 1) != 0,
                                       .dropout = (bits & 2) != 0,
                                       .in_place = (bits & 4) != 0},
                                      12);
    }
  }
}

// Otherwise a failed run would continue as if nothing had happened.
TEST(BiasActivationCuda, NotANumberStaysSo) {
  const float product[4] = {kNan, 1, -1, 0}, bias[4] = {};
  float out[4] = {};
  const BiasActivation<float> p{1, 4, {}, product, bias, false, {}, out};
  cuda_emulation::Launch({1, 1}, {kActivationThreads}, 0, BiasActivationForwardKernel<float, 1>, p);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 0);
}

}  // namespace
}  // namespace pelab::trainer::bias_activation_cuda_test
