// Problems for residual_norm.h with random data, a reference in double, and several problems
// combined as members.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "tests/unit/worker/trainer/kernels/members_fixture.h"
#include "tests/unit/worker/trainer/kernels/random_rows_fixture.h"
#include "worker/trainer/kernels/norm/residual_norm.h"

namespace pelab::trainer {

struct ResidualNormOptions {
  std::int64_t rows = 5;
  std::int64_t width = 32;
  std::int64_t residual_rows = 0;
  bool residual = true;
  bool product = true;
  bool bias = true;
  bool norm = true;
  bool dropout = true;
  bool keys_in_memory = false;
  // In sequences of `positions` rows, `skipped` more positions are left out but count in the
  // dropout's index.
  std::int64_t positions = 2, skipped = 0;
  bool to_sum = true;  // dy is given
  bool in_place = false;
  float sign = 1;
};

// A problem with the memory that it points to, and its reference in double.
template <class Element>
class ResidualNormCase {
 public:
  explicit ResidualNormCase(const ResidualNormOptions& options, unsigned seed = 0)
      : o(options),
        count(o.rows * o.width),
        residual(RandomElements<Element>((o.residual_rows > 0 ? o.residual_rows : o.rows) * o.width,
                                         10 * seed + 1, 1, 3)),
        product(RandomElements<Element>(count, 10 * seed + 2)),
        bias(RandomElements<float>(o.width, 10 * seed + 3)),
        gamma(RandomElements<float>(o.width, 10 * seed + 4)),
        beta(RandomElements<float>(o.width, 10 * seed + 5)),
        sum(NotNumbers<Element>(count)),
        normed(NotNumbers<Element>(count)),
        mean(NotNumbers<float>(o.rows)),
        inverse(NotNumbers<float>(o.rows)),
        to_sum(RandomElements<Element>(count, 10 * seed + 6)),
        to_normed(RandomElements<Element>(count, 10 * seed + 7)),
        to_residual(NotNumbers<Element>(count)),
        to_product(NotNumbers<Element>(count)),
        partial(NotNumbers<float>(NormBlocks(o.rows) * 3 * o.width)),
        keys{0x1234567 + 99 * seed, 0x89abcdef + 77 * seed} {
    p.rows = o.rows, p.width = o.width;
    if (o.residual) p.residual = residual.data();
    p.residual_rows = o.residual_rows;
    if (o.product) p.product = product.data();
    if (o.bias) p.bias = bias.data();
    p.sign = o.sign;
    if (o.dropout) p.dropout = {keys[0], keys[1], 1U << 30, 4.0f / 3, 77};
    SkipPositions(o.positions, o.skipped, &p.dropout);
    if (o.dropout && o.keys_in_memory) {
      p.dropout.keys = keys;
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

  double Mask(std::int64_t row, std::int64_t column) const {
    if (!o.dropout) return 1;
    DropoutStream stream = p.dropout;
    stream.key0 = keys[0], stream.key1 = keys[1];
    const std::int64_t of_all = row + row / o.positions * o.skipped;
    return DropoutFactor(stream, static_cast<std::uint32_t>(of_all * o.width + column));
  }
  // y of one row.
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
  // (y - mean) / deviation, with the mean and the deviation.
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
  // The value that the gradients belong to: dy y + dn n of one row.
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

  const ResidualNormOptions o;
  const std::int64_t count;
  std::vector<Element> residual, product;
  std::vector<float> bias, gamma, beta;
  std::vector<Element> sum, normed;
  std::vector<float> mean, inverse;
  std::vector<Element> to_sum, to_normed, to_residual, to_product;
  std::vector<float> partial;
  const std::vector<double> given_to_sum = AsDoubles(to_sum);
  const std::uint32_t keys[2];
  ResidualNorm<Element> p;
  ResidualNormGradients<Element> g;
};

// Problems that differ in everything but their options, and one problem with all of them as
// members.
template <class Element>
class ResidualNormMembers {
 public:
  using Case = ResidualNormCase<Element>;

  // `beyond`: see MemberParameters.
  ResidualNormMembers(const ResidualNormOptions& options, std::int64_t beyond)
      : alone(CasesOfMembers<Case>(options)), parameters_(ParametersOf(alone), beyond) {
    p = alone[0]->p, g = alone[0]->g;
    p.members = {kMembers, parameters_.stride()};
    for (const auto& one : alone) {
      Append(one->residual, &residual_);
      Append(one->product, &product_);
      Append(one->sum, &sum);
      Append(one->normed, &normed);
      Append(one->mean, &mean);
      Append(one->inverse, &inverse);
      Append(one->to_sum, &to_sum);
      Append(one->to_normed, &to_normed_);
      Append(one->to_residual, &to_residual);
      Append(one->to_product, &to_product);
      Append(one->partial, &partial);
      keys_.Add(one->keys[0], one->keys[1]);
    }
    if (options.residual) p.residual = residual_.data();
    if (options.product) p.product = product_.data();
    p.sum = sum.data(), p.normed = normed.data();
    p.mean = mean.data(), p.inverse_deviation = inverse.data();
    p.bias = parameters_.First(0), p.gamma = parameters_.First(1), p.beta = parameters_.First(2);
    if (options.dropout) {
      p.dropout.key0 = p.dropout.key1 = 0;
      p.dropout.keys = keys_.First(), p.dropout.member_keys = MemberKeys::kStride;
    }
    if (options.to_sum) g.sum = to_sum.data();
    if (options.norm) g.normed = to_normed_.data();
    g.residual = options.in_place ? to_sum.data() : to_residual.data();
    g.product = to_product.data();
    g.partial = partial.data();
  }
  ResidualNormMembers(const ResidualNormMembers&) = delete;
  ResidualNormMembers& operator=(const ResidualNormMembers&) = delete;

  void ExpectAsAlone() const {
    ExpectSameParts(sum, alone, "sum", [](const Case& one) { return one.sum; });
    ExpectSameParts(normed, alone, "normed", [](const Case& one) { return one.normed; });
    ExpectSameParts(mean, alone, "mean", [](const Case& one) { return one.mean; });
    ExpectSameParts(inverse, alone, "inverse", [](const Case& one) { return one.inverse; });
    ExpectSameParts(to_sum, alone, "to sum", [](const Case& one) { return one.to_sum; });
    ExpectSameParts(to_residual, alone, "to x", [](const Case& one) { return one.to_residual; });
    ExpectSameParts(to_product, alone, "to z", [](const Case& one) { return one.to_product; });
    ExpectSameParts(partial, alone, "partial", [](const Case& one) { return one.partial; });
  }

  const std::vector<std::unique_ptr<Case>> alone;
  ResidualNorm<Element> p;
  ResidualNormGradients<Element> g;
  std::vector<Element> sum, normed, to_sum, to_residual, to_product;
  std::vector<float> mean, inverse, partial;

 private:
  static std::vector<std::vector<std::vector<float>>> ParametersOf(
      const std::vector<std::unique_ptr<Case>>& cases) {
    std::vector<std::vector<std::vector<float>>> parameters;
    for (const auto& one : cases) {
      const std::vector<float> none;
      parameters.push_back({one->o.bias ? one->bias : none, one->o.norm ? one->gamma : none,
                            one->o.norm ? one->beta : none});
    }
    return parameters;
  }

  MemberParameters parameters_;
  MemberKeys keys_;
  std::vector<Element> residual_, product_, to_normed_;
};

}  // namespace pelab::trainer
