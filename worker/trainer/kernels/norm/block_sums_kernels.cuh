// Adds the partial sums of blocks of rows for some parameters: this completes the sum of a gradient
// over rows.
#pragma once

#include "worker/trainer/kernels/row_vectors.cuh"

namespace pelab::trainer {

inline constexpr int kSumSlices = 32;  // slices of the blocks, which are summed in parallel

// to[part][column] = the sum over blocks of partial[(block * kParts + part) * width + column], for
// each member: from partial (M, blocks, kParts, width) to (M, width).
template <int kParts>
struct BlockSums {
  const float* partial = nullptr;
  std::int64_t blocks = 0;
  std::int64_t width = 0;
  float* to[kParts] = {};  // null: not needed
};

// Blocks of (32, kSumSlices) threads; grid: (ceil(width / 32), kParts, members). Slice s adds
// blocks s, s + kSumSlices, …; then the slices are added in order.
template <int kParts>
__global__ void __launch_bounds__(kWarpLanes* kSumSlices) BlockSumsKernel(BlockSums<kParts> p) {
  PELAB_SHARED(float, slices, kSumSlices* kWarpLanes);
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarpLanes + threadIdx.x;
  const unsigned part = blockIdx.y;
  float* to = p.to[0];
#pragma unroll
  for (int i = 1; i < kParts; ++i) to = part == static_cast<unsigned>(i) ? p.to[i] : to;
  if (to == nullptr) return;
  to += blockIdx.z * p.width;
  float sum = 0;
  if (column < p.width) {
    const float* from = p.partial + (blockIdx.z * p.blocks * kParts + part) * p.width + column;
    const std::int64_t stride = kParts * p.width;
#pragma unroll 8
    for (std::int64_t block = threadIdx.y; block < p.blocks; block += kSumSlices) {
      sum += from[block * stride];
    }
  }
  slices[threadIdx.y * kWarpLanes + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= p.width) return;
  sum = 0;
#pragma unroll
  for (int slice = 0; slice < kSumSlices; ++slice) sum += slices[slice * kWarpLanes + threadIdx.x];
  to[column] = sum;
}

}  // namespace pelab::trainer
