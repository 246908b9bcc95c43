// Sums of the rows of matrices, one matrix per member.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/intrinsics.cuh"

namespace pelab::trainer {

inline constexpr int kSumColumns = 32;  // per block
inline constexpr int kSumLanes = 32;    // threads per column

// sums (M, columns) = the sums over the rows of partial (M, rows, columns). Grid: (blocks of
// columns, 1, M). Thread y of a column takes rows y, y + kSumLanes, … and keeps eight sums at a
// time.
template <class Element>
__global__ void __launch_bounds__(kSumColumns* kSumLanes)
    SumRowsKernel(const Element* partial, std::int64_t rows, std::int64_t columns, float* sums) {
  constexpr int kTogether = 8;
  PELAB_SHARED(float, lanes, kSumColumns* kSumLanes);
  partial += blockIdx.z * rows * columns;
  sums += blockIdx.z * columns;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kSumColumns + threadIdx.x;
  float own[kTogether] = {};
  if (column < columns) {
    std::int64_t row = threadIdx.y;
    for (; row + (kTogether - 1) * kSumLanes < rows; row += kTogether * kSumLanes) {
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        own[i] += ToFloat(partial[(row + i * kSumLanes) * columns + column]);
      }
    }
    for (; row < rows; row += kSumLanes) own[0] += ToFloat(partial[row * columns + column]);
  }
  lanes[threadIdx.y * kSumColumns + threadIdx.x] =
      ((own[0] + own[1]) + (own[2] + own[3])) + ((own[4] + own[5]) + (own[6] + own[7]));
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kSumLanes; ++i) sum += lanes[i * kSumColumns + threadIdx.x];
  sums[column] = sum;
}

}  // namespace pelab::trainer
