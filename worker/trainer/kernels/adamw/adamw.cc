#include "worker/trainer/kernels/adamw/adamw.h"

#include <cmath>

#include "worker/trainer/kernels/vectors.h"

namespace pelab::trainer {
namespace {

PELAB_INLINE void Update(const AdamWPass& pass, const AdamWRates& rates, std::int64_t begin,
                         std::int64_t end) {
  float* __restrict p = pass.parameters;
  float* __restrict g = pass.gradient;
  float* __restrict m = pass.first;
  float* __restrict v = pass.second;
  for (std::int64_t i = begin; i < end; ++i) {
    m[i] = m[i] * pass.beta1 + g[i] * pass.beta1_rest;
    v[i] = v[i] * pass.beta2 + g[i] * g[i] * pass.beta2_rest;
    const float denominator = std::sqrt(v[i]) / rates.root_correction + pass.epsilon;
    p[i] = p[i] * rates.decay - rates.size * m[i] / denominator;
    g[i] = 0;
  }
}

}  // namespace

void AdamWOnCpu(const AdamWPass& pass, std::int64_t begin, std::int64_t end) {
  const AdamWRates rates = pass.rates[pass.step != nullptr ? *pass.step : 0];
  RunWidest([&]<class>() PELAB_INLINE_LAMBDA { Update(pass, rates, begin, end); });
}

}  // namespace pelab::trainer
