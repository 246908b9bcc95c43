// Runs CUDA kernels on the host, for tests of kernels on machines without a GPU. The host compiler
// compiles the same source as nvcc. Every thread of a block is a fiber, and the blocks run one
// after another.
//
//   #include "tests/support/cuda_emulation.h"                    before the device code
//   #include "worker/trainer/kernels/norm/residual_norm_kernels.cuh"
//   cuda_emulation::Launch({blocks}, {threads}, dynamic_bytes, ForwardKernel<float>, problem);
//
// Besides wrong results it finds these errors:
//   - Threads of a block that do not meet at the same barrier, and lanes of a warp that do not meet
//     at the same collective: Launch throws Divergence, which says which threads wait where.
//   - Shared memory that is read before it is written (it is filled with NaN before every block) or
//     that is written past its end.
//   - Missing barriers: between two barriers the threads run in an order that differs from block to
//     block.
// The emulation is stricter than the hardware: a barrier needs every thread of the block, a
// collective every lane of its mask.
//
// Kernels declare shared memory through PELAB_SHARED and PELAB_DYNAMIC_SHARED (portable.h). Not
// thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <type_traits>

#define PELAB_CUDA_EMULATION 1

namespace pelab::cuda_emulation {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct Divergence : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The largest shared memory of a block on sm_90, in bytes.
inline constexpr std::size_t kMostShared = 227 * 1024;

void RunGrid(Dim3 grid, Dim3 block, std::size_t dynamic_shared_bytes,
             const std::function<void()>& thread);

// Throws Divergence, or std::invalid_argument for a launch that CUDA would refuse.
template <class Kernel, class... Args>
void Launch(Dim3 grid, Dim3 block, std::size_t dynamic_shared_bytes, Kernel kernel, Args... args) {
  RunGrid(grid, block, dynamic_shared_bytes, [&] { kernel(args...); });
}

// The functions below are for kernels and intrinsics, inside a launch.

// The block's variable with this tag. The first thread that asks for it creates it.
void* SharedVariable(const void* tag, std::size_t bytes);
void* DynamicShared();
void BlockBarrier(std::source_location where);
// Waits for the other lanes of `mask`. The last lane to arrive calls `resolve` with the operands of
// each lane (null outside the mask); `resolve` also writes the results there.
using Resolve = void (*)(void* const operands[32], std::uint32_t mask);
void WarpCollective(const char* name, std::uint32_t mask, void* operands, Resolve resolve,
                    std::source_location where);
unsigned Lane();

// FLOP of the tensor cores since the last call.
std::int64_t TakeTensorFlop();

// The result of __shfl…_sync: the bits of the value that lane `source` passed.
std::uint64_t Shuffle(const char* name, std::uint32_t mask, std::uint64_t bits, unsigned source,
                      std::source_location where);
std::uint32_t Ballot(const char* name, std::uint32_t mask, bool predicate,
                     std::source_location where);

template <class T>
T ShuffleAs(const char* name, std::uint32_t mask, T value, unsigned source,
            std::source_location where) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = Shuffle(name, mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace pelab::cuda_emulation

// CUDA's own names. They are in the global namespace, as in CUDA.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

using dim3 = pelab::cuda_emulation::Dim3;
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }

using std::max;
using std::min;

inline void __syncthreads(std::source_location where = std::source_location::current()) {
  pelab::cuda_emulation::BlockBarrier(where);
}
inline void __syncwarp(unsigned mask = 0xffffffffU,
                       std::source_location where = std::source_location::current()) {
  pelab::cuda_emulation::WarpCollective("__syncwarp", mask, nullptr, nullptr, where);
}
// `width` is a power of two; lanes read within segments of `width` lanes.
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              std::source_location where = std::source_location::current()) {
  const unsigned first = pelab::cuda_emulation::Lane() & ~(width - 1U);
  return pelab::cuda_emulation::ShuffleAs("__shfl_sync", mask, value, first | (lane & (width - 1U)),
                                          where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  std::source_location where = std::source_location::current()) {
  const unsigned lane = pelab::cuda_emulation::Lane(), last = lane | (width - 1U);
  const unsigned source = lane ^ static_cast<unsigned>(lanes);
  return pelab::cuda_emulation::ShuffleAs("__shfl_xor_sync", mask, value,
                                          source > last ? lane : source, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   std::source_location where = std::source_location::current()) {
  const unsigned lane = pelab::cuda_emulation::Lane(), last = lane | (width - 1U);
  return pelab::cuda_emulation::ShuffleAs("__shfl_down_sync", mask, value,
                                          lane + delta > last ? lane : lane + delta, where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 std::source_location where = std::source_location::current()) {
  const unsigned lane = pelab::cuda_emulation::Lane(), first = lane & ~(width - 1U);
  return pelab::cuda_emulation::ShuffleAs("__shfl_up_sync", mask, value,
                                          lane < first + delta ? lane : lane - delta, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              std::source_location where = std::source_location::current()) {
  return pelab::cuda_emulation::Ballot("__ballot_sync", mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) {
  return pelab::cuda_emulation::Ballot("__any_sync", mask, predicate != 0, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) {
  return pelab::cuda_emulation::Ballot("__all_sync", mask, predicate != 0, where) == mask;
}

template <class T>
T __ldg(const T* from) {
  return *from;
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

#include "tests/support/cuda_emulation_intrinsics.h"
