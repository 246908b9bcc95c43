// The kernels of dropout_step.h.
#pragma once

#include "worker/trainer/kernels/dropout/dropout_step.h"
#include "worker/trainer/kernels/row_vectors.cuh"

namespace pelab::trainer {

inline constexpr int kDropoutThreads = 256;
inline constexpr int kMaskVector = 4;  // elements per thread

// Philox4x32-10 of core/base/random.h, in device code.
__device__ __forceinline__ uint4 DevicePhilox(uint4 counter, std::uint32_t key0,
                                              std::uint32_t key1) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter.x;
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter.z;
    counter = make_uint4(static_cast<std::uint32_t>(product1 >> 32) ^ counter.y ^ key0,
                         static_cast<std::uint32_t>(product1),
                         static_cast<std::uint32_t>(product0 >> 32) ^ counter.w ^ key1,
                         static_cast<std::uint32_t>(product0));
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// One block per member. A thread makes the keys of two neighboring places, because one block of
// Philox has the words of both.
template <int kThreads>
__global__ void __launch_bounds__(kThreads) DropoutStepKernel(DropoutStep p) {
  const std::int64_t step = p.step[blockIdx.z] + 1;
  const std::uint64_t seed_key = p.seed_keys[blockIdx.z];
  p.keys += blockIdx.z * 2 * p.places;
  __syncthreads();
  if (threadIdx.x == 0) p.step[blockIdx.z] = step;
  for (std::int64_t pair = threadIdx.x; 2 * pair < p.places; pair += kThreads) {
    const uint4 words = DevicePhilox(
        make_uint4(static_cast<std::uint32_t>(pair), static_cast<std::uint32_t>(pair >> 32),
                   static_cast<std::uint32_t>(step),
                   static_cast<std::uint32_t>(static_cast<std::uint64_t>(step) >> 32)),
        static_cast<std::uint32_t>(seed_key), static_cast<std::uint32_t>(seed_key >> 32));
    // The 64 bits of a place have their upper half first. The first key is the lower half.
    std::uint32_t* const keys = p.keys + 4 * pair;
    keys[0] = words.y, keys[1] = words.x;
    if (2 * pair + 1 < p.places) keys[2] = words.w, keys[3] = words.z;
  }
}

// kVector: kMaskVector if every member's part of `mask` is aligned to 16 bytes, else 1.
template <int kVector>
__global__ void __launch_bounds__(kDropoutThreads)
    DropoutMaskKernel(DropoutStream stream, std::int64_t count, float* mask) {
  stream = WithKeys(MemberOf(stream, blockIdx.z));
  mask += blockIdx.z * count;
  const std::int64_t at = (std::int64_t{blockIdx.x} * kDropoutThreads + threadIdx.x) * kVector;
  float factors[kVector];
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    factors[v] = DropoutFactor(stream, static_cast<std::uint32_t>(at + v));
  }
  if (at + kVector <= count) return StoreVector(mask + at, factors);
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    if (at + v < count) mask[at + v] = factors[v];
  }
}

}  // namespace pelab::trainer
