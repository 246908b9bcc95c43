// The passes of bias_activation.h on CUDA. A warp processes the same columns of many rows, so it
// loads the bias once and sums its gradient in registers.
//
// A lane accesses kVector elements at once: 16 bytes, or one element if rows are not aligned to
// that.
#pragma once

#include "worker/trainer/kernels/activation/bias_activation.h"
#include "worker/trainer/kernels/row_vectors.cuh"

namespace pelab::trainer {

// Warps per block; warp w has rows w, w + 8, … of its block.
inline constexpr int kActivationWarps = 8;
inline constexpr int kActivationThreads = kActivationWarps * kWarpLanes;
inline constexpr float kInverseSqrtTwo = 0.70710678118654752f;
inline constexpr float kInverseSqrtTwoPi = 0.39894228040143268f;

// Columns per block. Grid: (ceil(width / kActivationColumns), NormBlocks(rows), members).
template <int kVector>
constexpr int kActivationColumns = kVector* kWarpLanes;

// NaN stays NaN.
__device__ __forceinline__ float Activated(bool gelu, float u) {
  if (gelu) return u * (0.5f * (1 + erff(u * kInverseSqrtTwo)));
  return u < 0 ? 0 : u;
}

__device__ __forceinline__ float ActivationSlope(bool gelu, float u) {
  if (!gelu) return u > 0 ? 1 : 0;
  return 0.5f * (1 + erff(u * kInverseSqrtTwo)) + u * kInverseSqrtTwoPi * __expf(-0.5f * u * u);
}

// The rows and columns of this thread.
struct ActivationPlace {
  std::int64_t column, row, end;
};
template <int kVector>
__device__ __forceinline__ ActivationPlace ActivationPlaceOf(std::int64_t rows) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kActivationColumns<kVector> +
                              threadIdx.x % kWarpLanes * std::int64_t{kVector};
  const std::int64_t begin = std::int64_t{blockIdx.y} * kNormBlockRows;
  return {column, begin + threadIdx.x / kWarpLanes, min(begin + kNormBlockRows, rows)};
}

template <int kVector>
__device__ __forceinline__ void TimesFactors(const DropoutStream& dropout, std::int64_t row,
                                             std::int64_t width, std::int64_t column,
                                             float (&x)[kVector]) {
  if (dropout.threshold == 0) return;
  const std::uint32_t first = DropoutRow(dropout, row) * static_cast<std::uint32_t>(width) +
                              static_cast<std::uint32_t>(column);
#pragma unroll
  for (int v = 0; v < kVector; ++v) x[v] *= DropoutFactor(dropout, first + v);
}

template <class Element, int kVector>
__global__ void __launch_bounds__(kActivationThreads)
    BiasActivationForwardKernel(BiasActivation<Element> all) {
  const BiasActivation<Element> p = MemberOf(all, blockIdx.z);
  const DropoutStream dropout = WithKeys(p.dropout);
  const ActivationPlace place = ActivationPlaceOf<kVector>(p.rows);
  if (place.column >= p.width) return;
  float bias[kVector], x[kVector];
  LoadVector(p.bias + place.column, bias);
#pragma unroll 4
  for (std::int64_t row = place.row; row < place.end; row += kActivationWarps) {
    const std::int64_t at = row * p.width + place.column;
    LoadVector(p.product + at, x);
#pragma unroll
    for (int v = 0; v < kVector; ++v) x[v] = Activated(p.gelu, x[v] + bias[v]);
    TimesFactors(dropout, row, p.width, place.column, x);
    StoreVector(p.out + at, x);
  }
}

template <class Element, int kVector>
__global__ void __launch_bounds__(kActivationThreads)
    BiasActivationBackwardKernel(BiasActivation<Element> all, BiasActivationGradients<Element> to) {
  const BiasActivation<Element> p = MemberOf(all, blockIdx.z);
  const BiasActivationGradients<Element> g = MemberOf(to, all, blockIdx.z);
  PELAB_SHARED(float, sums, kActivationWarps* kActivationColumns<kVector>);
  const DropoutStream dropout = WithKeys(p.dropout);
  const ActivationPlace place = ActivationPlaceOf<kVector>(p.rows);
  float to_bias[kVector] = {};
  if (place.column < p.width) {
    float bias[kVector];
    LoadVector(p.bias + place.column, bias);
    for (std::int64_t row = place.row; row < place.end; row += kActivationWarps) {
      const std::int64_t at = row * p.width + place.column;
      float x[kVector], to_out[kVector];
      LoadVector(p.product + at, x);
      LoadVector(g.out + at, to_out);
      TimesFactors(dropout, row, p.width, place.column, to_out);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        to_out[v] *= ActivationSlope(p.gelu, x[v] + bias[v]);
        to_bias[v] += to_out[v];
      }
      StoreVector(g.product + at, to_out);
    }
  }
  constexpr int kColumns = kActivationColumns<kVector>;
  StoreShared(sums + threadIdx.x / kWarpLanes * kColumns + threadIdx.x % kWarpLanes * kVector,
              to_bias);
  __syncthreads();
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumns + threadIdx.x;
  if (threadIdx.x >= kColumns || column >= p.width) return;
  float sum = 0;
#pragma unroll
  for (int warp = 0; warp < kActivationWarps; ++warp) sum += sums[warp * kColumns + threadIdx.x];
  g.partial[blockIdx.y * p.width + column] = sum;
}

// Launchers choose the kernel with the functions below.

template <class Element>
bool Aligned(const BiasActivation<Element>& p) {
  return RowsAligned<Element>(p.width, p.product, p.out) && RowsAligned<float>(p.width, p.bias) &&
         AlignedAlike(p.members);
}

// Calls launch(vector), where `vector` is an integral constant.
template <class Element, class Launch>
void WithActivationVector(bool aligned, const Launch& launch) {
  if (aligned) return launch(std::integral_constant<int, 16 / sizeof(Element)>());
  return launch(std::integral_constant<int, 1>());
}

}  // namespace pelab::trainer
