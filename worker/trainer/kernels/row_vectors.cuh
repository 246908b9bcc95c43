// Pieces of rows as floats in registers, and sums over a warp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "worker/trainer/kernels/intrinsics.cuh"

namespace pelab::trainer {

inline constexpr int kWarpLanes = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffU;

// Whether rows of `width` elements can be accessed 16 bytes at a time in all of the tensors. Null
// tensors do not count.
template <class Element, class... Pointers>
bool RowsAligned(std::int64_t width, Pointers... tensors) {
  const bool starts = ((reinterpret_cast<std::uintptr_t>(tensors) % 16 == 0) && ...);
  return starts && width % static_cast<std::int64_t>(16 / sizeof(Element)) == 0;
}

// Loads kCount elements. kCount is 1, or a multiple of 4 (float) or 8 (Bf16). Unless it is 1,
// `from` must be aligned to 16 bytes.
template <int kCount>
__device__ __forceinline__ void LoadVector(const float* from, float (&to)[kCount]) {
  if constexpr (kCount == 1) {
    to[0] = *from;
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 four = Load4(from + i);
      to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
  }
}

template <int kCount>
__device__ __forceinline__ void LoadVector(const Bf16* from, float (&to)[kCount]) {
  if constexpr (kCount == 1) {
    to[0] = ToFloat(*from);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 8) {
      const uint4 pairs = *reinterpret_cast<const uint4*>(from + i);
      const unsigned words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        to[i + 2 * w] = __uint_as_float(words[w] << 16);
        to[i + 2 * w + 1] = __uint_as_float(words[w] & 0xffff0000U);
      }
    }
  }
}

// Stores 16 bytes to global memory in one instruction. For an assignment through a uint4* the
// compiler makes four instructions if the words come from different branches. The compiler may move
// loads past this store; this is safe because the kernels here never read what they have written.
__device__ __forceinline__ void StoreWords(void* to, std::uint32_t a, std::uint32_t b,
                                           std::uint32_t c, std::uint32_t d) {
#if defined(__CUDACC__)
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(to)), "r"(a), "r"(b), "r"(c), "r"(d));
#else
  *static_cast<uint4*>(to) = make_uint4(a, b, c, d);
#endif
}

// Stores to global memory; kCount and alignment as for LoadVector.
template <int kCount>
__device__ __forceinline__ void StoreVector(float* to, const float (&from)[kCount]) {
  if constexpr (kCount == 1) {
    *to = from[0];
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      StoreWords(to + i, __float_as_uint(from[i]), __float_as_uint(from[i + 1]),
                 __float_as_uint(from[i + 2]), __float_as_uint(from[i + 3]));
    }
  }
}

template <int kCount>
__device__ __forceinline__ void StoreVector(Bf16* to, const float (&from)[kCount]) {
  if constexpr (kCount == 1) {
    *to = ToBf16(from[0]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 8) {
      StoreWords(to + i, PackBf16(from[i], from[i + 1]), PackBf16(from[i + 2], from[i + 3]),
                 PackBf16(from[i + 4], from[i + 5]), PackBf16(from[i + 6], from[i + 7]));
    }
  }
}

// Stores to shared memory.
template <int kCount>
__device__ __forceinline__ void StoreShared(float* to, const float (&from)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = from[i];
}

// The sum over the warp's 32 lanes, with the same bits in each lane.
__device__ __forceinline__ float WarpSum(float x) {
#pragma unroll
  for (int lanes = kWarpLanes / 2; lanes > 0; lanes /= 2)
    x += __shfl_xor_sync(kWholeWarp, x, lanes);
  return x;
}

}  // namespace pelab::trainer
