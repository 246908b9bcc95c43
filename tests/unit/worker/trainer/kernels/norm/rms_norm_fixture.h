// Problems for rms_norm.h with random data, and what its formulas give in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/unit/worker/trainer/kernels/members_fixture.h"
#include "tests/unit/worker/trainer/kernels/random_rows_fixture.h"
#include "worker/trainer/kernels/norm/rms_norm.h"

namespace pelab::trainer {

struct RmsNormOptions {
  std::int64_t rows = 9;
  std::int64_t width = 40;
  std::int64_t before = 0, after = 0;  // columns of x that belong to others, in each row
};

// A problem with the memory that it points to.
template <class Element>
struct RmsNormCase {
  explicit RmsNormCase(const RmsNormOptions& options, unsigned seed = 0)
      : o(options),
        stride(o.before + o.width + o.after),
        x(RandomElements<Element>(o.rows * stride, 10 * seed + 1, 1.5f)),
        to_normed(RandomElements<Element>(o.rows * o.width, 10 * seed + 2)),
        normed(NotNumbers<Element>(o.rows * o.width)),
        to_x(NotNumbers<Element>(o.rows * stride)),
        gamma(RandomElements<float>(o.width, 10 * seed + 3, 0.3f, 1)),
        inverse(NotNumbers<float>(o.rows)),
        partial(NotNumbers<float>(NormBlocks(o.rows) * o.width)) {
    p.rows = o.rows, p.width = o.width;
    p.x = x.data() + o.before, p.x_stride = stride;
    p.gamma = gamma.data(), p.normed = normed.data(), p.inverse_size = inverse.data();
    g = {to_normed.data(), to_x.data() + o.before, partial.data()};
  }
  RmsNormCase(const RmsNormCase&) = delete;
  RmsNormCase& operator=(const RmsNormCase&) = delete;

  std::vector<double> Row(std::int64_t row) const {
    std::vector<double> at;
    for (std::int64_t c = 0; c < o.width; ++c)
      at.push_back(ToFloat(x[row * stride + o.before + c]));
    return at;
  }
  double Inverse(const std::vector<double>& row) const {
    double squares = 0;
    for (const double at : row) squares += at * at;
    return 1 / std::sqrt(squares / static_cast<double>(o.width) + double{p.epsilon});
  }
  // The sum of n dn over a row: its derivatives are the gradient.
  double Score(std::int64_t row, const std::vector<double>& at) const {
    double score = 0;
    for (std::int64_t c = 0; c < o.width; ++c)
      score += at[c] * gamma[c] * ToFloat(to_normed[row * o.width + c]);
    return score * Inverse(at);
  }

  // Expects what the formulas give, and that the columns of others were not written.
  void ExpectForward() const {
    std::vector<double> n, sizes;
    for (std::int64_t row = 0; row < o.rows; ++row) {
      const std::vector<double> at = Row(row);
      sizes.push_back(Inverse(at));
      for (std::int64_t c = 0; c < o.width; ++c) n.push_back(at[c] * sizes.back() * gamma[c]);
    }
    ExpectClose(normed, n, "normed");
    ExpectClose(inverse, sizes, "inverse size");
  }
  void ExpectBackward() const {
    std::vector<double> dx, dgamma(o.width), sums(o.width);
    std::vector<Element> found;
    for (std::int64_t row = 0; row < o.rows; ++row) {
      std::vector<double> at = Row(row);
      const double size = Inverse(at);
      for (std::int64_t c = 0; c < o.width; ++c) {
        const double here = at[c], step = 1e-4;
        at[c] = here + step;
        const double above = Score(row, at);
        at[c] = here - step;
        const double below = Score(row, at);
        at[c] = here;
        dx.push_back((above - below) / (2 * step));
        dgamma[c] += here * size * ToFloat(to_normed[row * o.width + c]);
        found.push_back(to_x[row * stride + o.before + c]);
      }
      for (std::int64_t c = 0; c < stride; ++c) {
        if (c >= o.before && c < o.before + o.width) continue;
        EXPECT_TRUE(std::isnan(ToFloat(to_x[row * stride + c]))) << row << ", " << c;
      }
    }
    ExpectClose(found, dx, "to x");
    for (std::size_t i = 0; i < partial.size(); ++i) sums[i % o.width] += partial[i];
    ExpectClose(std::vector<float>(sums.begin(), sums.end()), dgamma, "to gamma");
  }

  RmsNormOptions o;
  std::int64_t stride;
  std::vector<Element> x, to_normed, normed, to_x;
  std::vector<float> gamma, inverse, partial;
  RmsNorm<Element> p;
  RmsNormGradients<Element> g;
};

// Problems that differ in everything but their options, and one problem with all of them as
// members.
template <class Element>
class RmsNormMembers {
 public:
  using Case = RmsNormCase<Element>;

  // `beyond`: see MemberParameters.
  RmsNormMembers(const RmsNormOptions& options, std::int64_t beyond)
      : alone(CasesOfMembers<Case>(options)),
        gammas_({{alone[0]->gamma}, {alone[1]->gamma}, {alone[2]->gamma}}, beyond) {
    p = alone[0]->p;
    p.members = {kMembers, gammas_.stride()};
    for (const auto& one : alone) {
      Append(one->x, &x_);
      Append(one->to_normed, &to_normed_);
      Append(one->normed, &normed);
      Append(one->to_x, &to_x);
      Append(one->inverse, &inverse);
      Append(one->partial, &partial);
    }
    p.x = x_.data() + options.before, p.gamma = gammas_.First(0);
    p.normed = normed.data(), p.inverse_size = inverse.data();
    g = {to_normed_.data(), to_x.data() + options.before, partial.data()};
  }
  RmsNormMembers(const RmsNormMembers&) = delete;
  RmsNormMembers& operator=(const RmsNormMembers&) = delete;

  void ExpectAsAlone() const {
    ExpectSameParts(normed, alone, "normed", [](const Case& one) { return one.normed; });
    ExpectSameParts(to_x, alone, "to x", [](const Case& one) { return one.to_x; });
    ExpectSameParts(inverse, alone, "inverse size", [](const Case& one) { return one.inverse; });
    ExpectSameParts(partial, alone, "partial", [](const Case& one) { return one.partial; });
  }

  const std::vector<std::unique_ptr<Case>> alone;
  std::vector<Element> normed, to_x;
  std::vector<float> inverse, partial;
  RmsNorm<Element> p;
  RmsNormGradients<Element> g;

 private:
  MemberParameters gammas_;
  std::vector<Element> x_, to_normed_;
};

}  // namespace pelab::trainer
