// The passes of rotary_heads.h on CUDA. A warp processes a row. A lane accesses kVector channels of
// one head at once: 16 bytes, or two channels if the heads are not aligned to that.
#pragma once

#include "worker/trainer/kernels/rotary/rotary_heads.h"
#include "worker/trainer/kernels/row_vectors.cuh"

namespace pelab::trainer {

inline constexpr int kRotaryWarps = 8;  // per block; grid: blocks of as many rows
inline constexpr int kRotaryThreads = kRotaryWarps * kWarpLanes;

// Elements one at a time where 16 bytes are not aligned.
template <class Element, int kVector>
__device__ __forceinline__ void LoadChannels(const Element* from, float (&to)[kVector]) {
  if constexpr (kVector == 2) {
    to[0] = ToFloat(from[0]), to[1] = ToFloat(from[1]);
  } else {
    LoadVector(from, to);
  }
}
template <class Element, int kVector>
__device__ __forceinline__ void StoreChannels(Element* to, const float (&from)[kVector]) {
  if constexpr (kVector == 2) {
    SetElement(to, from[0]), SetElement(to + 1, from[1]);
  } else {
    StoreVector(to, from);
  }
}

// Multiplies pairs of channels by the entries of `rotations`, or by their conjugates (sign -1).
template <int kVector>
__device__ __forceinline__ void TurnChannels(const float* rotations, float sign,
                                             float (&x)[kVector]) {
#pragma unroll
  for (int v = 0; v < kVector; v += 2) {
    const float cosine = rotations[v], sine = sign * rotations[v + 1], first = x[v];
    x[v] = first * cosine - x[v + 1] * sine;
    x[v + 1] = first * sine + x[v + 1] * cosine;
  }
}

// Copies content channels, kVector of one head at once. The last of an odd number of channels is
// copied alone.
template <int kVector, class Element>
__device__ __forceinline__ void CopyContent(const Element* from, std::int64_t from_head,
                                            Element* to, std::int64_t to_head, int heads,
                                            int width) {
  const int pieces = (width + kVector - 1) / kVector;
  for (int i = static_cast<int>(threadIdx.x) % kWarpLanes; i < heads * pieces; i += kWarpLanes) {
    const int head = i / pieces, c = i % pieces * kVector;
    const Element* const source = from + head * from_head + c;
    Element* const target = to + head * to_head + c;
    if (c + kVector <= width) {
      float x[kVector];
      LoadChannels(source, x);
      StoreChannels(target, x);
    } else {
      *target = *source;
    }
  }
}

template <class Element, int kVector>
__global__ void __launch_bounds__(kRotaryThreads) RotaryHeadsForwardKernel(RotaryHeads<Element> p) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kRotaryWarps + threadIdx.x / kWarpLanes;
  if (row >= p.rows) return;
  Element* const out = p.out + row * p.heads * p.HeadWidth();
  CopyContent<kVector>(p.content + row * p.content_stride, p.width, out, p.HeadWidth(), p.heads,
                       p.width);
  const Element* const rotary = p.rotary + row * p.RotaryHeadCount() * p.rotary_width;
  const float* const rotations = p.rotations + row % p.positions * p.rotary_width;
  const int pieces = p.rotary_width / kVector;
  for (int i = static_cast<int>(threadIdx.x) % kWarpLanes; i < p.heads * pieces; i += kWarpLanes) {
    const int head = i / pieces, c = i % pieces * kVector;
    float x[kVector];
    LoadChannels(rotary + (p.shared ? 0 : head * p.rotary_width) + c, x);
    TurnChannels(rotations + c, 1, x);
    StoreChannels(out + head * p.HeadWidth() + p.width + c, x);
  }
}

// The sum over all heads of `pieces` vectors of channels, each kVector wide: the lanes of a group
// have one vector each, and the groups share the heads. `pieces` must be a power of two of at most
// 32; lanes below it get the sums.
template <class Element, int kVector>
__device__ __forceinline__ void SumOverHeads(const Element* from, std::int64_t from_head, int heads,
                                             int pieces, float (&sum)[kVector]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
#pragma unroll
  for (int v = 0; v < kVector; ++v) sum[v] = 0;
  for (int head = lane / pieces; head < heads; head += kWarpLanes / pieces) {
    float x[kVector];
    LoadChannels(from + head * from_head + lane % pieces * kVector, x);
#pragma unroll
    for (int v = 0; v < kVector; ++v) sum[v] += x[v];
  }
  for (int lanes = kWarpLanes / 2; lanes >= pieces; lanes /= 2) {
#pragma unroll
    for (int v = 0; v < kVector; ++v) sum[v] += __shfl_xor_sync(kWholeWarp, sum[v], lanes);
  }
}

template <class Element, int kVector>
__device__ __forceinline__ void ToSharedRotary(const RotaryHeads<Element>& p,
                                               const Element* to_rotary_of_heads,
                                               const float* rotations, Element* to) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int pieces = p.rotary_width / kVector;
  float sum[kVector];
  if (pieces <= kWarpLanes && (pieces & (pieces - 1)) == 0) {
    SumOverHeads(to_rotary_of_heads, p.HeadWidth(), p.heads, pieces, sum);
    if (lane >= pieces) return;
    TurnChannels(rotations + lane * kVector, -1, sum);
    StoreChannels(to + lane * kVector, sum);
    return;
  }
  for (int piece = lane; piece < pieces; piece += kWarpLanes) {
#pragma unroll
    for (int v = 0; v < kVector; ++v) sum[v] = 0;
    for (int head = 0; head < p.heads; ++head) {
      float x[kVector];
      LoadChannels(to_rotary_of_heads + head * p.HeadWidth() + piece * kVector, x);
#pragma unroll
      for (int v = 0; v < kVector; ++v) sum[v] += x[v];
    }
    TurnChannels(rotations + piece * kVector, -1, sum);
    StoreChannels(to + piece * kVector, sum);
  }
}

template <class Element, int kVector>
__global__ void __launch_bounds__(kRotaryThreads)
    RotaryHeadsBackwardKernel(RotaryHeads<Element> p, RotaryHeadsGradients<Element> g) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kRotaryWarps + threadIdx.x / kWarpLanes;
  if (row >= p.rows) return;
  const Element* const out = g.out + row * p.heads * p.HeadWidth();
  CopyContent<kVector>(out, p.HeadWidth(), g.content + row * g.content_stride, p.width, p.heads,
                       p.width);
  Element* const rotary = g.rotary + row * p.RotaryHeadCount() * p.rotary_width;
  const float* const rotations = p.rotations + row % p.positions * p.rotary_width;
  if (p.shared) {
    ToSharedRotary<Element, kVector>(p, out + p.width, rotations, rotary);
    return;
  }
  const int pieces = p.rotary_width / kVector;
  for (int i = static_cast<int>(threadIdx.x) % kWarpLanes; i < p.heads * pieces; i += kWarpLanes) {
    const int head = i / pieces, c = i % pieces * kVector;
    float x[kVector];
    LoadChannels(out + head * p.HeadWidth() + p.width + c, x);
    TurnChannels(rotations + c, -1, x);
    StoreChannels(rotary + head * p.rotary_width + c, x);
  }
}

// Launchers choose the kernel with the functions below.

template <class Element>
bool Aligned(const RotaryHeads<Element>& p) {
  return RowsAligned<Element>(p.width, p.content, p.out) &&
         RowsAligned<Element>(p.rotary_width, p.rotary) &&
         RowsAligned<Element>(p.content_stride, p.content);
}
template <class Element>
bool Aligned(const RotaryHeads<Element>& p, const RotaryHeadsGradients<Element>& g) {
  return RowsAligned<Element>(p.width, g.content, g.out) &&
         RowsAligned<Element>(p.rotary_width, g.rotary) &&
         RowsAligned<Element>(g.content_stride, g.content);
}

// Calls launch(vector), where `vector` is an integral constant.
template <class Element, class Launch>
void WithRotaryVector(bool aligned, const Launch& launch) {
  if (aligned) return launch(std::integral_constant<int, 16 / sizeof(Element)>());
  return launch(std::integral_constant<int, 2>());
}

}  // namespace pelab::trainer
