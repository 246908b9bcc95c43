// The kernels of residual_norm.h against its formulas in double; gradients against finite
// differences of these.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/worker/trainer/kernels/norm/residual_norm_fixture.h"
#include "worker/trainer/kernels/norm/block_sums_kernels.cuh"
#include "worker/trainer/kernels/norm/residual_norm_kernels.cuh"

namespace pelab::trainer::residual_norm_cuda_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Options = ResidualNormOptions;
template <class Element>
using Case = ResidualNormCase<Element>;

// `aligned`: 16-byte accesses fit the problem.
template <class Element>
void Forward(const ResidualNorm<Element>& p, bool aligned) {
  const auto blocks =
      static_cast<unsigned>((p.rows + kNormWarps * kForwardRows - 1) / (kNormWarps * kForwardRows));
  WithPieces<Element>(p.width, aligned, [&](auto vector, auto chunks) {
    cuda_emulation::Launch({blocks, 1, static_cast<unsigned>(p.members.count)}, {kNormThreads}, 0,
                           ResidualNormForwardKernel<Element, vector.value, chunks.value>, p);
  });
}
template <class Element>
void Backward(const ResidualNorm<Element>& p, const ResidualNormGradients<Element>& g,
              bool aligned) {
  WithPieces<Element>(p.width, aligned, [&](auto vector, auto chunks) {
    cuda_emulation::Launch(
        {static_cast<unsigned>(NormBlocks(p.rows)), 1, static_cast<unsigned>(p.members.count)},
        {kNormThreads}, kNormWarps * p.width * sizeof(float),
        ResidualNormBackwardKernel<Element, vector.value, chunks.value>, p, g);
  });
}
template <class Element>
void Forward(Case<Element>* made) {
  Forward(made->p, Aligned(made->p));
}
template <class Element>
void Backward(Case<Element>* made) {
  Backward(made->p, made->g, Aligned(made->p));
}
// Returns the gradients of gamma, beta and the bias.
template <class Element>
std::vector<std::vector<float>> Reduce(const ResidualNorm<Element>& p,
                                       const ResidualNormGradients<Element>& g) {
  std::vector<std::vector<float>> to(3, std::vector<float>(p.members.count * p.width, kNan));
  BlockSums<3> sums{g.partial, NormBlocks(p.rows), p.width, {}};
  if (p.gamma != nullptr) sums.to[0] = to[0].data(), sums.to[1] = to[1].data();
  if (p.bias != nullptr) sums.to[2] = to[2].data();
  cuda_emulation::Launch(
      {static_cast<unsigned>((p.width + 31) / 32), 3, static_cast<unsigned>(p.members.count)},
      {kWarpLanes, kSumSlices}, 0, BlockSumsKernel<3>, sums);
  return to;
}

template <class Element>
void ExpectForward(const Options& options) {
  Case<Element> made(options);
  Forward(&made);
  std::vector<double> sum, normed, mean, inverse;
  for (std::int64_t row = 0; row < options.rows; ++row) {
    const std::vector<double> y = made.Sum(row);
    const auto n = made.Norm(y);
    sum.insert(sum.end(), y.begin(), y.end());
    for (std::int64_t c = 0; c < options.width; ++c)
      normed.push_back(n.h[c] * made.gamma[c] + made.beta[c]);
    mean.push_back(n.mean), inverse.push_back(n.inverse);
  }
  ExpectClose(made.sum, sum, "sum");
  if (!options.norm) return;
  ExpectClose(made.normed, normed, "normed");
  ExpectClose(made.mean, mean, "mean");
  ExpectClose(made.inverse, inverse, "inverse deviation");
}

template <class Element>
void ExpectBackward(const Options& options) {
  Case<Element> made(options);
  Forward(&made);
  Backward(&made);
  std::vector<double> to_residual, to_product, to_gamma(options.width), to_beta(options.width),
      to_bias(options.width);
  for (std::int64_t row = 0; row < options.rows; ++row) {
    std::vector<double> y = made.Sum(row);
    std::vector<double> h(options.width);
    if (options.norm) h = made.Norm(y).h;
    for (std::int64_t c = 0; c < options.width; ++c) {
      const double at = y[c], step = 1e-4;
      y[c] = at + step;
      const double above = made.Score(row, y);
      y[c] = at - step;
      const double below = made.Score(row, y);
      y[c] = at;
      const double dx = (above - below) / (2 * step), dz = options.sign * made.Mask(row, c) * dx;
      const double dn = ToFloat(made.to_normed[row * options.width + c]);
      to_residual.push_back(dx), to_product.push_back(dz);
      to_gamma[c] += dn * h[c], to_beta[c] += dn, to_bias[c] += dz;
    }
  }
  ExpectClose(options.in_place ? made.to_sum : made.to_residual, to_residual, "to residual");
  ExpectClose(made.to_product, to_product, "to product");
  const auto to = Reduce(made.p, made.g);
  const double tolerance = kTolerance<Element>;
  if (options.norm) {
    ExpectClose(to[0], to_gamma, "to gamma", tolerance);
    ExpectClose(to[1], to_beta, "to beta", tolerance);
  } else {
    EXPECT_TRUE(std::isnan(made.partial[0]));
  }
  if (options.bias) {
    ExpectClose(to[2], to_bias, "to bias", tolerance);
  } else {
    EXPECT_TRUE(std::isnan(made.partial[2 * options.width]));
  }
}

template <class Element>
class ResidualNormCuda : public testing::Test {};
using Elements = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(ResidualNormCuda, Elements);

// Widths for 16-byte and for single accesses, with a last access by only some of the lanes, up to
// the largest width.
constexpr std::int64_t kWidths[] = {1, 7, 20, 24, 100, 256, 257, 264, 512, 520, 1024};

TYPED_TEST(ResidualNormCuda, ForwardOfEveryWidth) {
  for (const std::int64_t width : kWidths) {
    SCOPED_TRACE(width);
    Options options;
    options.rows = 3, options.width = width;
    if (width == 1) options.norm = false;
    ExpectForward<TypeParam>(options);
  }
}

TYPED_TEST(ResidualNormCuda, BackwardOfEveryWidth) {
  for (const std::int64_t width : kWidths) {
    SCOPED_TRACE(width);
    Options options;
    options.rows = width > 500 ? 2 : 9, options.width = width;
    if (width == 1) options.norm = false;
    ExpectBackward<TypeParam>(options);
  }
}

// More than one block of rows; the last one is not full.
TYPED_TEST(ResidualNormCuda, ManyRows) {
  Options options;
  options.rows = 3 * kNormBlockRows - 5, options.width = 40;
  ExpectForward<TypeParam>(options);
  ExpectBackward<TypeParam>(options);
}

TYPED_TEST(ResidualNormCuda, EveryOptionOnAndOff) {
  for (int bits = 0; bits < 128; ++bits) {
    Options options;
    options.width = bits % 3 == 0 ? 19 : 24;
    options.skipped = bits % 7 < 3 ? bits % 7 : 0;
    options.residual = bits & 1, options.bias = bits & 2, options.norm = bits & 4,
    options.dropout = bits & 8;
    options.to_sum = bits & 16, options.in_place = bits & 32 && options.to_sum,
    options.keys_in_memory = bits & 64;
    options.sign = bits % 5 == 0 ? -1.0f : 1.0f;
    if (!options.norm && !options.to_sum) continue;  // there is no gradient
    SCOPED_TRACE(bits);
    ExpectForward<TypeParam>(options);
    ExpectBackward<TypeParam>(options);
  }
}

TYPED_TEST(ResidualNormCuda, NormAlone) {
  Options options;
  options.product = options.bias = options.dropout = false;
  ExpectForward<TypeParam>(options);
}

// Evaluation does not need the sum or the statistics.
TYPED_TEST(ResidualNormCuda, WritesOnlyWhatIsWanted) {
  Options options;
  Case<TypeParam> made(options), whole(options);
  made.p.sum = nullptr, made.p.mean = made.p.inverse_deviation = nullptr;
  Forward(&made);
  Forward(&whole);
  EXPECT_EQ(AsDoubles(made.normed), AsDoubles(whole.normed));
  EXPECT_TRUE(std::isnan(ToFloat(made.sum[0])));
}

// Head ablation: 16 variants of a batch, each without another head's contribution, from one
// residual stream.
TYPED_TEST(ResidualNormCuda, VariantsShareTheResidual) {
  constexpr int kVariants = 16;
  Options options;
  options.residual_rows = 6, options.rows = kVariants * options.residual_rows, options.width = 48;
  options.sign = -1, options.bias = options.dropout = false;
  ExpectForward<TypeParam>(options);
}

// A mean far from zero: computed as E[y^2] - E[y]^2, the variance would be lost.
TEST(ResidualNormCuda, VarianceFarFromZero) {
  Options options;
  options.product = options.bias = options.dropout = false;
  Case<float> made(options);
  made.residual = RandomElements<float>(made.count, 9, 1e-2f, 1000);
  made.p.residual = made.residual.data();
  made.p.epsilon = 0;
  Forward(&made);
  std::vector<double> inverse;
  for (std::int64_t row = 0; row < options.rows; ++row)
    inverse.push_back(made.Norm(made.Sum(row)).inverse);
  ExpectClose(made.inverse, inverse, "inverse deviation", 1e-3);
}

// Expects that each member's part has the same bits as the same kernel on it alone. `beyond`: see
// MemberParameters.
template <class Element>
void ExpectMembersAsAlone(const Options& options, std::int64_t beyond) {
  ResidualNormMembers<Element> made(options, beyond);
  const bool aligned = Aligned(made.p);
  EXPECT_EQ(aligned, beyond % 4 == 0 && options.width % (16 / sizeof(Element)) == 0);
  Forward(made.p, aligned);
  Backward(made.p, made.g, aligned);
  const auto sums = Reduce(made.p, made.g);
  std::vector<std::vector<float>> expected(sums.size());
  for (const auto& one : made.alone) {
    Forward(one->p, aligned);
    Backward(one->p, one->g, aligned);
    const auto own = Reduce(one->p, one->g);
    for (std::size_t i = 0; i < own.size(); ++i) Append(own[i], &expected[i]);
  }
  made.ExpectAsAlone();
  ExpectSameBits(sums[0], expected[0], "gamma");
  ExpectSameBits(sums[1], expected[1], "beta");
  ExpectSameBits(sums[2], expected[2], "bias");
}

TYPED_TEST(ResidualNormCuda, MembersOfEveryWidth) {
  for (const std::int64_t width : kWidths) {
    for (const std::int64_t beyond : {4, 1, 2}) {
      SCOPED_TRACE(testing::Message() << width << ", " << beyond << " further");
      Options options;
      options.rows = 3, options.width = width;
      ExpectMembersAsAlone<TypeParam>(options, beyond);
    }
  }
}

TYPED_TEST(ResidualNormCuda, MembersOfManyRows) {
  for (const std::int64_t rows : {kNormBlockRows, 2 * kNormBlockRows - 5}) {
    Options options;
    options.rows = rows, options.width = 40;
    ExpectMembersAsAlone<TypeParam>(options, 8);
  }
}

TYPED_TEST(ResidualNormCuda, MembersWithEveryOptionOnAndOff) {
  for (int bits = 0; bits < 128; ++bits) {
    Options options;
    options.width = bits % 3 == 0 ? 19 : 24;
    options.residual = bits & 1, options.bias = bits & 2, options.norm = bits & 4,
    options.dropout = bits & 8;
    options.to_sum = bits & 16, options.in_place = bits & 32 && options.to_sum,
    options.product = !(bits & 64);
    options.sign = bits % 5 == 0 ? -1.0f : 1.0f;
    if (!options.norm && !options.to_sum) continue;  // there is no gradient
    SCOPED_TRACE(bits);
    ExpectMembersAsAlone<TypeParam>(options, bits % 2 == 0 ? 4 : 3);
  }
}

// Each member's variants share its own residual stream.
TYPED_TEST(ResidualNormCuda, MembersWithVariants) {
  Options options;
  options.residual_rows = 6, options.rows = 5 * options.residual_rows, options.width = 48;
  options.sign = -1;
  ExpectMembersAsAlone<TypeParam>(options, 4);
}

// Members without keys in memory share one pair of keys.
TYPED_TEST(ResidualNormCuda, MembersWithOnePairOfKeys) {
  Options options;
  ResidualNormMembers<TypeParam> made(options, 4);
  made.p.dropout = made.alone[0]->p.dropout;
  Forward(made.p, true);
  for (const auto& one : made.alone) {
    one->p.dropout = made.p.dropout;
    Forward(one->p, true);
  }
  made.ExpectAsAlone();
}

TEST(ResidualNormCuda, SumsOfManyBlocks) {
  constexpr std::int64_t kBlocks = 77, kWidth = 45;
  const std::vector<float> partial = RandomElements<float>(kMembers * kBlocks * 3 * kWidth, 11);
  std::vector<float> gamma(kMembers * kWidth, kNan), bias(kMembers * kWidth, kNan);
  const BlockSums<3> sums{partial.data(), kBlocks, kWidth, {gamma.data(), nullptr, bias.data()}};
  cuda_emulation::Launch({2, 3, kMembers}, {kWarpLanes, kSumSlices}, 0, BlockSumsKernel<3>, sums);
  std::vector<double> to_gamma(kMembers * kWidth), to_bias(kMembers * kWidth);
  for (std::int64_t block = 0; block < kMembers * kBlocks; ++block) {
    const std::int64_t member = block / kBlocks;
    for (std::int64_t c = 0; c < kWidth; ++c) {
      to_gamma[member * kWidth + c] += partial[block * 3 * kWidth + c];
      to_bias[member * kWidth + c] += partial[(block * 3 + 2) * kWidth + c];
    }
  }
  ExpectClose(gamma, to_gamma, "gamma");
  ExpectClose(bias, to_bias, "bias");
}

}  // namespace
}  // namespace pelab::trainer::residual_norm_cuda_test
