// The kernels of residual_norm.h against its formulae in double; gradients against differences of them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/trainer/kernels/random_rows_for_test.h"
#include "worker/trainer/kernels/block_sums_kernels.cuh"
#include "worker/trainer/kernels/residual_norm_kernels.cuh"

namespace pelab::trainer {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Options {
  std::int64_t rows = 5;
  std::int64_t width = 32;
  std::int64_t residual_rows = 0;
  bool residual = true;
  bool product = true;
  bool bias = true;
  bool norm = true;
  bool dropout = true;
  bool device_keys = false;
  bool to_sum = true;  // dy is given
  bool in_place = false;
  float sign = 1;
};

template <class Element>
std::vector<Element> Empty(std::int64_t count) {
  std::vector<Element> elements(count);
  for (Element& element : elements) SetElement(&element, kNan);
  return elements;
}

// A problem with the memory that it points to, and the same in double.
template <class Element>
class Case {
 public:
  explicit Case(const Options& options)
      : o(options),
        count(o.rows * o.width),
        residual(RandomElements<Element>((o.residual_rows > 0 ? o.residual_rows : o.rows) * o.width,
                                         1, 1, 3)),
        product(RandomElements<Element>(count, 2)),
        bias(RandomElements<float>(o.width, 3)),
        gamma(RandomElements<float>(o.width, 4)),
        beta(RandomElements<float>(o.width, 5)),
        sum(Empty<Element>(count)),
        normed(Empty<Element>(count)),
        mean(o.rows, kNan),
        inverse(o.rows, kNan),
        to_sum(RandomElements<Element>(count, 6)),
        to_normed(RandomElements<Element>(count, 7)),
        to_residual(Empty<Element>(count)),
        to_product(Empty<Element>(count)),
        partial(NormBlocks(o.rows) * 3 * o.width, kNan) {
    p.rows = o.rows, p.width = o.width;
    if (o.residual) p.residual = residual.data();
    p.residual_rows = o.residual_rows;
    if (o.product) p.product = product.data();
    if (o.bias) p.bias = bias.data();
    p.sign = o.sign;
    if (o.dropout) p.dropout = {0x1234567, 0x89abcdef, 1U << 30, 4.0f / 3, 77};
    if (o.dropout && o.device_keys) {
      p.dropout.device_keys = keys;
      p.dropout.key0 = p.dropout.key1 = 0;
    }
    if (o.norm) p.gamma = gamma.data(), p.beta = beta.data();
    p.sum = sum.data(), p.normed = normed.data();
    p.mean = mean.data(), p.inverse_deviation = inverse.data();
    g.sum = o.to_sum ? to_sum.data() : nullptr;
    g.normed = o.norm ? to_normed.data() : nullptr;
    g.residual = o.in_place ? to_sum.data() : to_residual.data();
    g.product = to_product.data();
    g.partial = partial.data();
  }

  void Forward() {
    const unsigned blocks = static_cast<unsigned>((o.rows + kNormWarps * kForwardRows - 1) /
                                                  (kNormWarps * kForwardRows));
    WithPieces<Element>(o.width, Aligned(p), [&](auto vector, auto chunks) {
      cuda_emulation::Launch({blocks}, {kNormThreads}, 0,
                             ResidualNormForwardKernel<Element, vector.value, chunks.value>, p);
    });
  }
  void Backward() {
    WithPieces<Element>(o.width, Aligned(p), [&](auto vector, auto chunks) {
      cuda_emulation::Launch({static_cast<unsigned>(NormBlocks(o.rows))}, {kNormThreads},
                             kNormWarps * o.width * sizeof(float),
                             ResidualNormBackwardKernel<Element, vector.value, chunks.value>, p, g);
    });
  }
  // gamma's, beta's, bias's.
  std::vector<std::vector<float>> Reduce() {
    std::vector<std::vector<float>> to(3, std::vector<float>(o.width, kNan));
    BlockSums<3> sums{partial.data(), NormBlocks(o.rows), o.width, {}};
    if (o.norm) sums.to[0] = to[0].data(), sums.to[1] = to[1].data();
    if (o.bias) sums.to[2] = to[2].data();
    cuda_emulation::Launch({static_cast<unsigned>((o.width + 31) / 32), 3},
                           {kWarpLanes, kSumSlices}, 0, BlockSumsKernel<3>, sums);
    return to;
  }

  double Mask(std::int64_t row, std::int64_t column) const {
    if (!o.dropout) return 1;
    DropoutStream stream = p.dropout;
    stream.key0 = keys[0], stream.key1 = keys[1];
    return DropoutFactor(stream, static_cast<std::uint32_t>(row * o.width + column));
  }
  // y of a row.
  std::vector<double> Sum(std::int64_t row) const {
    std::vector<double> y(o.width, 0.0);
    const std::int64_t from = o.residual_rows > 0 ? row % o.residual_rows : row;
    for (std::int64_t c = 0; c < o.width; ++c) {
      const double z = ToFloat(product[row * o.width + c]) + (o.bias ? bias[c] : 0.0);
      if (o.product) y[c] = o.sign * Mask(row, c) * z;
      if (o.residual) y[c] += ToFloat(residual[from * o.width + c]);
    }
    return y;
  }
  // (y - mean) / deviation, and the two.
  struct Normed {
    std::vector<double> h;
    double mean = 0, inverse = 0;
  };
  Normed Norm(const std::vector<double>& y) const {
    Normed n;
    double squares = 0;
    for (const double x : y) n.mean += x / static_cast<double>(o.width);
    for (const double x : y) squares += (x - n.mean) * (x - n.mean);
    n.inverse = 1 / std::sqrt(squares / static_cast<double>(o.width) + p.epsilon);
    for (const double x : y) n.h.push_back((x - n.mean) * n.inverse);
    return n;
  }
  // What the gradients are of: dy y + dn n of one row.
  double Score(std::int64_t row, const std::vector<double>& y) const {
    double score = 0;
    Normed n;
    if (o.norm) n = Norm(y);
    for (std::int64_t c = 0; c < o.width; ++c) {
      if (o.to_sum) score += given_to_sum[row * o.width + c] * y[c];
      if (o.norm) score += ToFloat(to_normed[row * o.width + c]) * (n.h[c] * gamma[c] + beta[c]);
    }
    return score;
  }

  const Options o;
  const std::int64_t count;
  std::vector<Element> residual, product;
  std::vector<float> bias, gamma, beta;
  std::vector<Element> sum, normed;
  std::vector<float> mean, inverse;
  std::vector<Element> to_sum, to_normed, to_residual, to_product;
  std::vector<float> partial;
  const std::vector<double> given_to_sum = Doubles(to_sum);
  const std::uint32_t keys[2] = {0x1234567, 0x89abcdef};
  ResidualNorm<Element> p;
  ResidualNormGradients<Element> g;
};

template <class Element>
void ExpectForward(const Options& options) {
  Case<Element> made(options);
  made.Forward();
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
  made.Forward();
  made.Backward();
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
  const auto to = made.Reduce();
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

// Of 16 bytes and of single elements, with a last access that only some of the lanes make, to the most that fits.
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

// More than one block of rows, the last one not full.
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
    options.residual = bits & 1, options.bias = bits & 2, options.norm = bits & 4,
    options.dropout = bits & 8;
    options.to_sum = bits & 16, options.in_place = bits & 32 && options.to_sum,
    options.device_keys = bits & 64;
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

// In evaluation nobody reads the sum or the statistics.
TYPED_TEST(ResidualNormCuda, WritesOnlyWhatIsWanted) {
  Options options;
  Case<TypeParam> made(options), whole(options);
  made.p.sum = nullptr, made.p.mean = made.p.inverse_deviation = nullptr;
  made.Forward();
  whole.Forward();
  EXPECT_EQ(Doubles(made.normed), Doubles(whole.normed));
  EXPECT_TRUE(std::isnan(ToFloat(made.sum[0])));
}

// Head ablation: 16 variants of a batch, each without another head's contribution, from one residual stream.
TYPED_TEST(ResidualNormCuda, VariantsShareTheResidual) {
  constexpr int kVariants = 16;
  Options options;
  options.residual_rows = 6, options.rows = kVariants * options.residual_rows, options.width = 48;
  options.sign = -1, options.bias = options.dropout = false;
  ExpectForward<TypeParam>(options);
}

// A mean far from zero: the difference of E[y^2] and E[y]^2 would have lost the variance.
TEST(ResidualNormCuda, VarianceFarFromZero) {
  Options options;
  options.product = options.bias = options.dropout = false;
  Case<float> made(options);
  made.residual = RandomElements<float>(made.count, 9, 1e-2f, 1000);
  made.p.residual = made.residual.data();
  made.p.epsilon = 0;
  made.Forward();
  std::vector<double> inverse;
  for (std::int64_t row = 0; row < options.rows; ++row)
    inverse.push_back(made.Norm(made.Sum(row)).inverse);
  ExpectClose(made.inverse, inverse, "inverse deviation", 1e-3);
}

TEST(ResidualNormCuda, SumsOfManyBlocks) {
  constexpr std::int64_t kBlocks = 77, kWidth = 45;
  const std::vector<float> partial = RandomElements<float>(kBlocks * 3 * kWidth, 11);
  std::vector<float> gamma(kWidth, kNan), bias(kWidth, kNan);
  const BlockSums<3> sums{partial.data(), kBlocks, kWidth, {gamma.data(), nullptr, bias.data()}};
  cuda_emulation::Launch({2, 3}, {kWarpLanes, kSumSlices}, 0, BlockSumsKernel<3>, sums);
  std::vector<double> to_gamma(kWidth), to_bias(kWidth);
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    for (std::int64_t c = 0; c < kWidth; ++c) {
      to_gamma[c] += partial[block * 3 * kWidth + c];
      to_bias[c] += partial[(block * 3 + 2) * kWidth + c];
    }
  }
  ExpectClose(gamma, to_gamma, "gamma");
  ExpectClose(bias, to_bias, "bias");
}

}  // namespace
}  // namespace pelab::trainer
