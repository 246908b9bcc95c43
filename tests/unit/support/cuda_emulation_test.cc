// Tests the emulation of CUDA itself, which the other tests of kernels rely on.
#include "tests/support/cuda_emulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "worker/trainer/kernels/intrinsics.cuh"

namespace pelab::trainer {
namespace {

using cuda_emulation::Divergence;
using cuda_emulation::Launch;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

__global__ void WriteIndices(int* out) {
  const unsigned thread = threadIdx.x + blockDim.x * threadIdx.y;
  const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
  out[block * blockDim.x * blockDim.y + thread] = static_cast<int>(100 * block + thread);
}

TEST(CudaEmulation, RunsEveryThreadOfEveryBlock) {
  std::vector<int> out(6 * 40, -1);
  Launch({3, 2}, {10, 4}, 0, WriteIndices, out.data());
  for (int block = 0; block < 6; ++block) {
    for (int thread = 0; thread < 40; ++thread) {
      EXPECT_EQ(out[block * 40 + thread], 100 * block + thread);
    }
  }
}

template <class T>
__global__ void Reverse(const T* in, T* out) {
  PELAB_SHARED(T, held, 64);
  held[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = held[63 - threadIdx.x];
}

TEST(CudaEmulation, SharesMemoryAcrossABarrier) {
  std::vector<float> in(256), out(256);
  for (int i = 0; i < 256; ++i) in[i] = static_cast<float>(i);
  Launch({4}, {64}, 0, Reverse<float>, in.data(), out.data());
  for (int i = 0; i < 256; ++i) EXPECT_EQ(out[i], i / 64 * 64 + 63 - i % 64);
}

__global__ void SumNeighbors(const float* in, float* out, bool barrier) {
  PELAB_DYNAMIC_SHARED(float, held);
  held[threadIdx.x] = in[threadIdx.x];
  if (barrier) __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = held[threadIdx.x] + held[(threadIdx.x + 1) % 64];
}

TEST(CudaEmulation, PoisonsSharedMemoryBeforeEveryBlock) {
  const std::vector<float> in(64, 1);
  std::vector<float> out(256);
  Launch({4}, {64}, 64 * sizeof(float), SumNeighbors, in.data(), out.data(), true);
  for (const float x : out) EXPECT_EQ(x, 2);
  Launch({4}, {64}, 64 * sizeof(float), SumNeighbors, in.data(), out.data(), false);
  for (int block = 0; block < 4; ++block) {
    int poisoned = 0;
    for (int i = 0; i < 64; ++i) poisoned += std::isnan(out[block * 64 + i]);
    EXPECT_GT(poisoned, 0) << "without a barrier some thread reads what is not there yet";
  }
}

__global__ void WritePast() {
  PELAB_DYNAMIC_SHARED(float, held);
  held[threadIdx.x] = 0;
}

TEST(CudaEmulation, SeesWritesPastTheEnd) {
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_DEATH(Launch({1}, {33}, 32 * sizeof(float), WritePast), "heap-buffer-overflow");
#else
  EXPECT_THROW(Launch({1}, {33}, 32 * sizeof(float), WritePast), std::out_of_range);
#endif
}

__global__ void LeaveEarly(unsigned who) {
  if (threadIdx.x == who) return;
  __syncthreads();
}

__global__ void MeetApart() {
  if (threadIdx.x < 5) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void HalfAWarp(unsigned mask) {
  if (threadIdx.x < 16) __syncwarp(mask);
}

__global__ void BarrierAgainstShuffle(int* out) {
  if (threadIdx.x < 32) {
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffU, threadIdx.x == 3 ? 1 : 0, 1);
    if (threadIdx.x == 7) __syncwarp();
  }
  __syncthreads();
}

TEST(CudaEmulation, ReportsDivergence) {
  for (const unsigned who : {0U, 17U, 63U}) {
    EXPECT_THAT([&] { Launch({2}, {64}, 0, LeaveEarly, who); },
                ThrowsMessage<Divergence>(
                    AllOf(HasSubstr("block (0, 0, 0)"),
                          HasSubstr("thread (" + std::to_string(who) + ", 0, 0) has left"),
                          HasSubstr("cuda_emulation_test.cc:"))));
  }
  EXPECT_THAT([] { Launch({1}, {64}, 0, MeetApart); },
              ThrowsMessage<Divergence>(HasSubstr("__syncthreads")));
  EXPECT_THROW(Launch({1}, {32}, 0, HalfAWarp, 0xffffffffU), Divergence);
  EXPECT_NO_THROW(Launch({1}, {32}, 0, HalfAWarp, 0xffffU));
  std::vector<int> out(32);
  EXPECT_THAT([&] { Launch({1}, {64}, 0, BarrierAgainstShuffle, out.data()); },
              ThrowsMessage<Divergence>(HasSubstr("__syncwarp")));
  EXPECT_NO_THROW(Launch({2}, {64}, 0, LeaveEarly, 64U)) << "as new after a failure";
}

TEST(CudaEmulation, RefusesWhatCudaRefuses) {
  EXPECT_THROW(Launch({1}, {1025}, 0, LeaveEarly, 5000U), std::invalid_argument);
  EXPECT_THROW(Launch({0}, {32}, 0, LeaveEarly, 5000U), std::invalid_argument);
  EXPECT_THROW(Launch({1}, {32}, 228 * 1024, LeaveEarly, 5000U), std::invalid_argument);
}

struct Collectives {
  float sum;
  int indexed, indexed8, up, down, xor8;
  unsigned ballot;
  bool any, all;
};

__global__ void UseCollectives(Collectives* out) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  constexpr unsigned kAll = 0xffffffffU;
  Collectives& mine = out[threadIdx.x];
  float sum = static_cast<float>(threadIdx.x);
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kAll, sum, lanes);
  mine.sum = sum;
  mine.indexed = __shfl_sync(kAll, lane, 5);
  mine.indexed8 = __shfl_sync(kAll, lane, 5, 8);
  mine.up = __shfl_up_sync(kAll, lane, 3);
  mine.down = __shfl_down_sync(kAll, lane, 3, 16);
  mine.xor8 = __shfl_xor_sync(kAll, lane, 4, 8);
  mine.ballot = __ballot_sync(kAll, lane % 3 == 0);
  mine.any = __any_sync(kAll, threadIdx.x == 40) != 0;
  mine.all = __all_sync(kAll, threadIdx.x >= 32) != 0;
}

TEST(CudaEmulation, ShufflesAndVotes) {
  std::vector<Collectives> out(64);
  Launch({1}, {64}, 0, UseCollectives, out.data());
  unsigned thirds = 0;
  for (int lane = 0; lane < 32; lane += 3) thirds |= 1U << lane;
  for (int i = 0; i < 64; ++i) {
    const int lane = i % 32;
    EXPECT_EQ(out[i].sum, i < 32 ? 496 : 1520);
    EXPECT_EQ(out[i].indexed, 5);
    EXPECT_EQ(out[i].indexed8, lane / 8 * 8 + 5);
    EXPECT_EQ(out[i].up, lane < 3 ? lane : lane - 3);
    EXPECT_EQ(out[i].down, lane % 16 + 3 > 15 ? lane : lane + 3);
    EXPECT_EQ(out[i].xor8, lane ^ 4);
    EXPECT_EQ(out[i].ballot, thirds);
    EXPECT_EQ(out[i].any, i >= 32);
    EXPECT_EQ(out[i].all, i >= 32);
  }
}

// C = A B through shared memory and ldmatrix fragments. A is stored by rows, and so is B (k, n).
__global__ void Multiply(const Bf16* a, const Bf16* b, float* c) {
  PELAB_SHARED(Bf16, left, 16 * 16);
  PELAB_SHARED(Bf16, right, 16 * 8);
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) left[i] = a[i];
  for (int i = lane; i < 128; i += 32) right[i] = b[i];
  __syncwarp();
  std::uint32_t a_part[4], b_parts[4];
  LoadMatrix4(a_part, left + lane % 16 * 16 + lane / 16 * 8);
  LoadMatrix4Transposed(b_parts, right + lane % 16 * 8);
  const std::uint32_t b_part[2] = {b_parts[0], b_parts[1]};
  float sum[4] = {1, 1, 1, 1};
  MmaBf16(sum, a_part, b_part);
  const int row = lane / 4, column = lane % 4 * 2;
  for (int r = 0; r < 4; ++r) c[(row + r / 2 * 8) * 8 + column + r % 2] = sum[r];
}

TEST(CudaEmulation, MultipliesByTensorCores) {
  std::vector<Bf16> a(256), b(128);
  for (int i = 0; i < 256; ++i) a[i] = ToBf16(static_cast<float>(i * 7 % 31 - 15));
  for (int i = 0; i < 128; ++i) b[i] = ToBf16(static_cast<float>(i * 5 % 23 - 11));
  std::vector<float> c(128);
  Launch({1}, {32}, 0, Multiply, a.data(), b.data(), c.data());
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float expected = 1;
      for (int k = 0; k < 16; ++k) {
        expected += ToFloat(a[row * 16 + k]) * ToFloat(b[k * 8 + column]);
      }
      EXPECT_EQ(c[row * 8 + column], expected) << row << ", " << column;
    }
  }
}

TEST(Bf16, RoundsToTheNearestEven) {
  for (const float x : {0.0f, 1.0f, -2.5f, 0.15625f, INFINITY, -INFINITY}) {
    EXPECT_EQ(ToFloat(ToBf16(x)), x);
  }
  EXPECT_EQ(ToBf16(1 + 1.0f / 256).bits, ToBf16(1).bits) << "a tie goes to the even one";
  EXPECT_EQ(ToBf16(1 + 3.0f / 256).bits, ToBf16(1 + 4.0f / 256).bits);
  EXPECT_EQ(ToBf16(1 + 1.001f / 256).bits, ToBf16(1 + 2.0f / 256).bits);
  EXPECT_TRUE(std::isinf(ToFloat(ToBf16(3.4e38f))));
  EXPECT_TRUE(std::isnan(ToFloat(ToBf16(NAN))));
}

}  // namespace
}  // namespace pelab::trainer
