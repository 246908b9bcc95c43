#include "worker/trainer/kernels/activation/bias_activation.h"

#include <algorithm>

#include "worker/trainer/kernels/vectors.h"

namespace pelab::trainer {
namespace {

constexpr float kInverseSqrtTwoPi = 0.3989422804014327f;

// Phi(u) and phi(u) of the standard normal distribution. The tail is Abramowitz and Stegun 7.1.26,
// with an error of at most 8e-8: a polynomial in 1 / (1 + p |u| / sqrt(2)) times the density.
template <class Floats>
struct Normal {
  Floats cumulative;
  Floats density;
};
template <class Floats>
PELAB_INLINE Normal<Floats> NormalAt(Floats u) {
  const Floats size = Chosen(u < 0.0f, -u, u);
  const Floats bell = Exp(size * size * -0.5f);
  const Floats t = 1.0f / (size * (0.3275911f * 0.7071067811865476f) + 1.0f);
  Floats tail = t * 1.061405429f - 1.453152027f;
  tail = tail * t + 1.421413741f;
  tail = tail * t - 0.284496736f;
  tail = tail * t + 0.254829592f;
  tail *= t * bell * 0.5f;  // Phi(-|u|)
  return {Chosen(u < 0.0f, tail, 1.0f - tail), bell * kInverseSqrtTwoPi};
}

template <class Floats>
PELAB_INLINE Floats Activate(bool gelu, Floats u) {
  if (gelu) return u * NormalAt(u).cumulative;
  return Larger(u, Floats{});
}

template <class Floats>
PELAB_INLINE Floats Slope(bool gelu, Floats u) {
  if (gelu) {
    const Normal<Floats> normal = NormalAt(u);
    return normal.cumulative + u * normal.density;
  }
  return Chosen(u > 0.0f, Floats{} + 1.0f, Floats{});
}

// u = h + b for 16 elements.
template <class Floats>
PELAB_INLINE Floats InputAt(const BiasActivation<float>& p, std::int64_t row, std::int64_t column) {
  return Load<Floats>(p.product + row * p.width + column) + Load<Floats>(p.bias + column);
}

template <class Floats>
PELAB_INLINE Floats FactorsAt(const BiasActivation<float>& p, std::int64_t row,
                              std::int64_t column) {
  if (p.dropout.threshold == 0) return Floats{} + 1.0f;
  const auto width = static_cast<std::uint32_t>(p.width);
  return DropoutFactors<Floats>(
      p.dropout, DropoutRow(p.dropout, row) * width + static_cast<std::uint32_t>(column));
}

}  // namespace

void BiasActivationForward(const BiasActivation<float>& problem, std::int64_t begin,
                           std::int64_t end) {
  RunWidest([&]<class Floats>() PELAB_INLINE_LAMBDA {
    const std::int64_t last = std::min(problem.rows, end * kNormBlockRows);
    for (std::int64_t row = begin * kNormBlockRows; row < last; ++row) {
      for (std::int64_t c = 0; c < problem.width; c += kLanes) {
        Store(Activate(problem.gelu, InputAt<Floats>(problem, row, c)) *
                  FactorsAt<Floats>(problem, row, c),
              problem.out + row * problem.width + c);
      }
    }
  });
}

void BiasActivationBackward(const BiasActivation<float>& problem,
                            const BiasActivationGradients<float>& gradients, std::int64_t begin,
                            std::int64_t end) {
  RunWidest([&]<class Floats>() PELAB_INLINE_LAMBDA {
    for (std::int64_t block = begin; block < end; ++block) {
      float* const partial = gradients.partial + block * problem.width;
      std::fill_n(partial, problem.width, 0.0f);
      const std::int64_t last = std::min(problem.rows, (block + 1) * kNormBlockRows);
      for (std::int64_t row = block * kNormBlockRows; row < last; ++row) {
        for (std::int64_t c = 0; c < problem.width; c += kLanes) {
          const std::int64_t at = row * problem.width + c;
          const Floats change = Load<Floats>(gradients.out + at) *
                                FactorsAt<Floats>(problem, row, c) *
                                Slope(problem.gelu, InputAt<Floats>(problem, row, c));
          Store(change, gradients.product + at);
          Store(Load<Floats>(partial + c) + change, partial + c);
        }
      }
    }
  });
}

}  // namespace pelab::trainer
