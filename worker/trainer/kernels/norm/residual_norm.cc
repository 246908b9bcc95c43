#include "worker/trainer/kernels/norm/residual_norm.h"

#include <algorithm>
#include <cmath>

#include "worker/trainer/kernels/norm/partial_sums.h"
#include "worker/trainer/kernels/vectors.h"

namespace pelab::trainer {
namespace {

// Places in a block's partial sums.
enum Part { kGamma = 0, kBeta = 1, kBias = 2 };

// y of one row, 16 columns from `column` on. `first`: the dropout index of the row's first element.
template <class Floats>
PELAB_INLINE Floats SumAt(const ResidualNorm<float>& p, const float* residual, const float* product,
                          std::uint32_t first, std::int64_t column) {
  Floats y = {};
  if (product != nullptr) {
    y = Load<Floats>(product + column);
    if (p.bias != nullptr) y += Load<Floats>(p.bias + column);
    if (p.dropout.threshold != 0) {
      y *= DropoutFactors<Floats>(p.dropout, first + static_cast<std::uint32_t>(column));
    }
    y *= p.sign;
  }
  return residual != nullptr ? Load<Floats>(residual + column) + y : y;
}

template <class Floats>
PELAB_INLINE void NormRow(const ResidualNorm<float>& p, std::int64_t row, const float* y,
                          Floats sums) {
  const float mean = Sum(sums) / static_cast<float>(p.width);
  Floats squares = {};
  for (std::int64_t c = 0; c < p.width; c += kLanes) {
    const Floats centered = Load<Floats>(y + c) - mean;
    squares += centered * centered;
  }
  const float inverse = 1 / std::sqrt(Sum(squares) / static_cast<float>(p.width) + p.epsilon);
  float* const normed = p.normed + row * p.width;
  for (std::int64_t c = 0; c < p.width; c += kLanes) {
    Store((Load<Floats>(y + c) - mean) * inverse * Load<Floats>(p.gamma + c) +
              Load<Floats>(p.beta + c),
          normed + c);
  }
  if (p.mean != nullptr) p.mean[row] = mean;
  if (p.inverse_deviation != nullptr) p.inverse_deviation[row] = inverse;
}

template <class Floats>
PELAB_INLINE void ForwardRow(const ResidualNorm<float>& p, std::int64_t row) {
  const std::int64_t from = p.residual_rows > 0 ? row % p.residual_rows : row;
  const float* const residual = p.residual != nullptr ? p.residual + from * p.width : nullptr;
  const float* const product = p.product != nullptr ? p.product + row * p.width : nullptr;
  // If y is not needed, it is stored where n will be.
  float* const y = (p.sum != nullptr ? p.sum : p.normed) + row * p.width;
  const std::uint32_t first = DropoutRow(p.dropout, row) * static_cast<std::uint32_t>(p.width);
  Floats sums = {};
  for (std::int64_t c = 0; c < p.width; c += kLanes) {
    const Floats x = SumAt<Floats>(p, residual, product, first, c);
    Store(x, y + c);
    sums += x;
  }
  if (p.gamma != nullptr) NormRow(p, row, y, sums);
}

template <class Floats>
PELAB_INLINE void Add(const Floats& x, float* to) {
  Store(Load<Floats>(to) + x, to);
}

// dx without the part from dy is inverse (g - mean_g - h mean_gh).
struct NormTerms {
  float mean = 0, inverse = 0, mean_g = 0, mean_gh = 0;
};

template <class Floats>
PELAB_INLINE NormTerms TermsOf(const ResidualNorm<float>& p, const float* to_normed,
                               std::int64_t row) {
  NormTerms terms{p.mean[row], p.inverse_deviation[row]};
  const float* const y = p.sum + row * p.width;
  Floats g_sum = {}, gh_sum = {};
  for (std::int64_t c = 0; c < p.width; c += kLanes) {
    const Floats g = Load<Floats>(to_normed + c) * Load<Floats>(p.gamma + c);
    g_sum += g;
    gh_sum += g * ((Load<Floats>(y + c) - terms.mean) * terms.inverse);
  }
  terms.mean_g = Sum(g_sum) / static_cast<float>(p.width);
  terms.mean_gh = Sum(gh_sum) / static_cast<float>(p.width);
  return terms;
}

template <class Floats>
PELAB_INLINE void BackwardRow(const ResidualNorm<float>& p, const ResidualNormGradients<float>& g,
                              std::int64_t row, float* partial) {
  const std::int64_t at = row * p.width;
  const float* const y = p.sum + at;
  const float* const to_normed = p.gamma != nullptr ? g.normed + at : nullptr;
  const NormTerms terms = p.gamma != nullptr ? TermsOf<Floats>(p, to_normed, row) : NormTerms{};
  const std::uint32_t first = DropoutRow(p.dropout, row) * static_cast<std::uint32_t>(p.width);
  for (std::int64_t c = 0; c < p.width; c += kLanes) {
    Floats to_sum = g.sum != nullptr ? Load<Floats>(g.sum + at + c) : Floats{};
    if (p.gamma != nullptr) {
      const Floats h = (Load<Floats>(y + c) - terms.mean) * terms.inverse;
      const Floats dn = Load<Floats>(to_normed + c);
      to_sum += terms.inverse * (dn * Load<Floats>(p.gamma + c) - terms.mean_g - h * terms.mean_gh);
      Add(dn * h, partial + kGamma * p.width + c);
      Add(dn, partial + kBeta * p.width + c);
    }
    Floats to_product = to_sum * p.sign;
    if (p.dropout.threshold != 0) {
      to_product *= DropoutFactors<Floats>(p.dropout, first + static_cast<std::uint32_t>(c));
    }
    if (p.bias != nullptr) Add(to_product, partial + kBias * p.width + c);
    if (g.product != nullptr) Store(to_product, g.product + at + c);
    if (g.residual != nullptr) Store(to_sum, g.residual + at + c);
  }
}

}  // namespace

void ResidualNormForward(const ResidualNorm<float>& problem, std::int64_t begin, std::int64_t end) {
  RunWidest([&]<class Floats>() PELAB_INLINE_LAMBDA {
    const std::int64_t last = std::min(problem.rows, end * kNormBlockRows);
    for (std::int64_t row = begin * kNormBlockRows; row < last; ++row)
      ForwardRow<Floats>(problem, row);
  });
}

void ResidualNormBackward(const ResidualNorm<float>& problem,
                          const ResidualNormGradients<float>& gradients, std::int64_t begin,
                          std::int64_t end) {
  RunWidest([&]<class Floats>() PELAB_INLINE_LAMBDA {
    for (std::int64_t block = begin; block < end; ++block) {
      float* const partial = gradients.partial + block * 3 * problem.width;
      std::fill_n(partial, 3 * problem.width, 0.0f);
      const std::int64_t last = std::min(problem.rows, (block + 1) * kNormBlockRows);
      for (std::int64_t row = block * kNormBlockRows; row < last; ++row) {
        BackwardRow<Floats>(problem, gradients, row, partial);
      }
    }
  });
}

void ResidualNormReduce(const float* partial, std::int64_t blocks, std::int64_t width,
                        float* to_gamma, float* to_beta, float* to_bias) {
  float* const to[] = {to_gamma, to_beta, to_bias};
  for (int part = 0; part < 3; ++part) {
    if (to[part] != nullptr)
      SumPartials(partial + part * width, blocks, 3 * width, width, to[part]);
  }
}

}  // namespace pelab::trainer
