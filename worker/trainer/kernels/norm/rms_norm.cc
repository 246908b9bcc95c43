#include "worker/trainer/kernels/norm/rms_norm.h"

#include <algorithm>
#include <cmath>

#include "worker/trainer/kernels/vectors.h"

namespace pelab::trainer {
namespace {

template <class Floats>
PELAB_INLINE void ForwardRow(const RmsNorm<float>& p, std::int64_t row) {
  const float* const x = p.x + row * p.x_stride;
  Floats squares = {};
  for (std::int64_t c = 0; c < p.width; c += kLanes) {
    const Floats at = Load<Floats>(x + c);
    squares += at * at;
  }
  const float inverse = 1 / std::sqrt(Sum(squares) / static_cast<float>(p.width) + p.epsilon);
  float* const normed = p.normed + row * p.width;
  for (std::int64_t c = 0; c < p.width; c += kLanes)
    Store(Load<Floats>(x + c) * inverse * Load<Floats>(p.gamma + c), normed + c);
  if (p.inverse_size != nullptr) p.inverse_size[row] = inverse;
}

template <class Floats>
PELAB_INLINE void BackwardRow(const RmsNorm<float>& p, const RmsNormGradients<float>& g,
                              std::int64_t row, float* partial) {
  const float* const x = p.x + row * p.x_stride;
  const float* const to_normed = g.normed + row * p.width;
  float* const to_x = g.x + row * p.x_stride;
  const float inverse = p.inverse_size[row];
  Floats sums = {};
  for (std::int64_t c = 0; c < p.width; c += kLanes) {
    const Floats h = Load<Floats>(x + c) * inverse;
    const Floats dn = Load<Floats>(to_normed + c);
    sums += dn * Load<Floats>(p.gamma + c) * h;
    Store(Load<Floats>(partial + c) + dn * h, partial + c);
  }
  const float mean_gh = Sum(sums) / static_cast<float>(p.width);
  for (std::int64_t c = 0; c < p.width; c += kLanes) {
    const Floats h = Load<Floats>(x + c) * inverse;
    const Floats g_at = Load<Floats>(to_normed + c) * Load<Floats>(p.gamma + c);
    Store((g_at - h * mean_gh) * inverse, to_x + c);
  }
}

}  // namespace

void RmsNormForward(const RmsNorm<float>& problem, std::int64_t begin, std::int64_t end) {
  RunWidest([&]<class Floats>() PELAB_INLINE_LAMBDA {
    const std::int64_t last = std::min(problem.rows, end * kNormBlockRows);
    for (std::int64_t row = begin * kNormBlockRows; row < last; ++row)
      ForwardRow<Floats>(problem, row);
  });
}

void RmsNormBackward(const RmsNorm<float>& problem, const RmsNormGradients<float>& gradients,
                     std::int64_t begin, std::int64_t end) {
  RunWidest([&]<class Floats>() PELAB_INLINE_LAMBDA {
    for (std::int64_t block = begin; block < end; ++block) {
      float* const partial = gradients.partial + block * problem.width;
      std::fill_n(partial, problem.width, 0.0f);
      const std::int64_t last = std::min(problem.rows, (block + 1) * kNormBlockRows);
      for (std::int64_t row = block * kNormBlockRows; row < last; ++row)
        BackwardRow<Floats>(problem, gradients, row, partial);
    }
  });
}

}  // namespace pelab::trainer
