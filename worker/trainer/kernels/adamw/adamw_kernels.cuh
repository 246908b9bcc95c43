// The kernel of adamw.h. A thread has four neighboring parameters, or one if memory is not aligned
// to that.
#pragma once

#include "worker/trainer/kernels/adamw/adamw.h"
#include "worker/trainer/kernels/row_vectors.cuh"

namespace pelab::trainer {

inline constexpr int kAdamWThreads = 256;

// The step of one parameter.
__device__ __forceinline__ void AdamWStep(const AdamWPass& p, const AdamWRates& rates,
                                          float gradient, float* parameter, float* first,
                                          float* second) {
  *first = fmaf(p.beta1_rest, gradient, p.beta1 * *first);
  *second = fmaf(p.beta2_rest * gradient, gradient, p.beta2 * *second);
  const float denominator = sqrtf(*second) / rates.root_correction + p.epsilon;
  *parameter = *parameter * rates.decay - rates.size * (*first / denominator);
}

// Stores four 16-bit elements (8 bytes).
__device__ __forceinline__ void StoreRounded(Bf16* to, const float (&x)[4]) {
  Store4(to, make_float4(x[0], x[1], x[2], x[3]));
}
__device__ __forceinline__ void StoreRounded(Bf16* to, const float (&x)[1]) { *to = ToBf16(x[0]); }

template <int kVector>
__device__ __forceinline__ void AdamWElements(const AdamWPass& p, const AdamWRates& rates,
                                              std::int64_t at) {
  float parameter[kVector], gradient[kVector], first[kVector], second[kVector];
  LoadVector(p.parameters + at, parameter);
  LoadVector(p.gradient + at, gradient);
  LoadVector(p.first + at, first);
  LoadVector(p.second + at, second);
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    AdamWStep(p, rates, gradient[v], &parameter[v], &first[v], &second[v]);
    gradient[v] = 0;
  }
  StoreVector(p.parameters + at, parameter);
  StoreVector(p.gradient + at, gradient);
  StoreVector(p.first + at, first);
  StoreVector(p.second + at, second);
  if (p.rounded != nullptr) StoreRounded(p.rounded + at, parameter);
}

// kVector: 1 or 4. With 4, the last group may be incomplete.
template <int kVector>
__global__ void __launch_bounds__(kAdamWThreads) AdamWKernel(AdamWPass p) {
  const AdamWRates rates = p.rates[p.step != nullptr ? *p.step : 0];
  const std::int64_t at = (std::int64_t{blockIdx.x} * kAdamWThreads + threadIdx.x) * kVector;
  if (at + kVector <= p.count) return AdamWElements<kVector>(p, rates, at);
  for (std::int64_t i = at; i < p.count; ++i) AdamWElements<1>(p, rates, i);
}

}  // namespace pelab::trainer
