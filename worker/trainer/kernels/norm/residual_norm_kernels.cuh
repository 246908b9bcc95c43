// The passes of residual_norm.h on CUDA. A warp processes a row and keeps it in its lanes'
// registers, so that memory is read and written once. The variance is the mean of squared
// deviations, computed from the registers. Grids: (blocks of rows, 1, members).
//
// Template parameters: a lane accesses kVector elements at once (16 bytes, or one element if rows
// are not aligned to that). kChunks accesses per lane cover a row of up to 32 kVector kChunks
// columns.
#pragma once

#include "worker/trainer/kernels/norm/residual_norm.h"
#include "worker/trainer/kernels/row_vectors.cuh"

namespace pelab::trainer {

inline constexpr int kNormWarps = 8;  // per block
inline constexpr int kNormThreads = kNormWarps * kWarpLanes;
// Forward: the number of rows that a warp processes in sequence; it loads bias, gamma and beta
// once.
inline constexpr int kForwardRows = 4;

// The number of blocks for which a multiprocessor should have registers. With up to 8 columns per
// lane it is kWanted, so that loads of enough rows are in flight; otherwise it is 1.
template <int kVector, int kChunks, int kWanted>
constexpr int kBlocksAtOnce = kVector > 1 && kVector* kChunks <= 8 ? kWanted : 1;

// A lane's part of a row or of a parameter.
template <int kVector, int kChunks>
struct RowPiece {
  float at[kChunks][kVector] = {};

  __device__ __forceinline__ static std::int64_t Column(int chunk) {
    return (chunk * kWarpLanes + static_cast<int>(threadIdx.x) % kWarpLanes) *
           std::int64_t{kVector};
  }
  // Elements beyond the end of the row do not change.
  template <class Element>
  __device__ __forceinline__ void Load(const Element* row, std::int64_t width) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (Column(c) < width) LoadVector(row + Column(c), at[c]);
    }
  }
  template <class Element>
  __device__ __forceinline__ void Store(Element* row, std::int64_t width) const {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (Column(c) < width) StoreVector(row + Column(c), at[c]);
    }
  }
};

// Calls function(chunk, place) for each element of the lane in a row.
template <int kVector, int kChunks, class Function>
__device__ __forceinline__ void ForEach(std::int64_t width, const Function& function) {
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (RowPiece<kVector, kChunks>::Column(c) >= width) continue;
#pragma unroll
    for (int v = 0; v < kVector; ++v) function(c, v);
  }
}

// The index of the first element of a row.
__device__ __forceinline__ std::uint32_t FirstOfRow(const DropoutStream& dropout, std::int64_t row,
                                                    std::int64_t width) {
  return DropoutRow(dropout, row) * static_cast<std::uint32_t>(width);
}

// The sign times the dropout factor of the element at `first` + `v`.
__device__ __forceinline__ float SignedFactor(const DropoutStream& dropout, float sign,
                                              std::uint32_t first, int v) {
  return dropout.threshold == 0 ? sign : sign * DropoutFactor(dropout, first + v);
}

template <class Element, int kVector, int kChunks>
__global__ void __launch_bounds__(kNormThreads, kBlocksAtOnce<kVector, kChunks, 4>)
    ResidualNormForwardKernel(ResidualNorm<Element> all) {
  using Piece = RowPiece<kVector, kChunks>;
  const ResidualNorm<Element> p = MemberOf(all, blockIdx.z);
  const std::int64_t width = p.width;
  const DropoutStream dropout = WithKeys(p.dropout);
  Piece bias, gamma, beta;
  if (p.product != nullptr && p.bias != nullptr) bias.Load(p.bias, width);
  if (p.gamma != nullptr) gamma.Load(p.gamma, width), beta.Load(p.beta, width);
  const std::int64_t warp = std::int64_t{blockIdx.x} * kNormWarps + threadIdx.x / kWarpLanes;
  for (int i = 0; i < kForwardRows; ++i) {
    const std::int64_t row = warp * kForwardRows + i;
    if (row >= p.rows) return;
    const std::int64_t from = p.residual_rows > 0 ? row % p.residual_rows : row;
    Piece y;
    if (p.residual != nullptr) y.Load(p.residual + from * width, width);
    if (p.product != nullptr) {
      Piece z;
      z.Load(p.product + row * width, width);
      const std::uint32_t row_first = FirstOfRow(dropout, row, width);
      ForEach<kVector, kChunks>(width, [&](int c, int v) {
        const std::uint32_t first = row_first + static_cast<std::uint32_t>(Piece::Column(c));
        y.at[c][v] += SignedFactor(dropout, p.sign, first, v) * (z.at[c][v] + bias.at[c][v]);
      });
    }
    if (p.sum != nullptr) y.Store(p.sum + row * width, width);
    if (p.gamma == nullptr) continue;
    float sum = 0;
    ForEach<kVector, kChunks>(width, [&](int c, int v) { sum += y.at[c][v]; });
    const float mean = WarpSum(sum) / static_cast<float>(width);
    float squares = 0;
    ForEach<kVector, kChunks>(width, [&](int c, int v) {
      const float centered = y.at[c][v] - mean;
      squares += centered * centered;
    });
    const float inverse = 1 / sqrtf(WarpSum(squares) / static_cast<float>(width) + p.epsilon);
    ForEach<kVector, kChunks>(width, [&](int c, int v) {
      y.at[c][v] = (y.at[c][v] - mean) * inverse * gamma.at[c][v] + beta.at[c][v];
    });
    y.Store(p.normed + row * width, width);
    if (threadIdx.x % kWarpLanes == 0) {
      if (p.mean != nullptr) p.mean[row] = mean;
      if (p.inverse_deviation != nullptr) p.inverse_deviation[row] = inverse;
    }
  }
}

// Adds the warps' sums of one parameter, in the order of the warps, and stores them in to (width).
// `shared`: kNormWarps rows of `width`. Every thread of the block must call it.
template <int kVector, int kChunks>
__device__ __forceinline__ void AddWarps(const RowPiece<kVector, kChunks>& sums, float* shared,
                                         std::int64_t width, float* to) {
  using Piece = RowPiece<kVector, kChunks>;
  float* const row = shared + threadIdx.x / kWarpLanes * width;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (Piece::Column(c) < width) StoreShared(row + Piece::Column(c), sums.at[c]);
  }
  __syncthreads();
  for (std::int64_t column = threadIdx.x; column < width; column += kNormThreads) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kNormWarps; ++warp) sum += shared[warp * width + column];
    to[column] = sum;
  }
  __syncthreads();
}

// Each block processes kNormBlockRows rows. Dynamic shared memory: kNormWarps * width floats.
template <class Element, int kVector, int kChunks>
__global__ void __launch_bounds__(kNormThreads, kBlocksAtOnce<kVector, kChunks, 3>)
    ResidualNormBackwardKernel(ResidualNorm<Element> all, ResidualNormGradients<Element> to) {
  using Piece = RowPiece<kVector, kChunks>;
  const ResidualNorm<Element> p = MemberOf(all, blockIdx.z);
  const ResidualNormGradients<Element> g = MemberOf(to, all, blockIdx.z);
  PELAB_DYNAMIC_SHARED(float, shared);
  const std::int64_t width = p.width;
  const DropoutStream dropout = WithKeys(p.dropout);
  Piece gamma, to_gamma, to_beta, to_bias;
  if (p.gamma != nullptr) gamma.Load(p.gamma, width);
  const std::int64_t begin = std::int64_t{blockIdx.x} * kNormBlockRows;
  const std::int64_t end = min(begin + kNormBlockRows, p.rows);
  for (std::int64_t row = begin + threadIdx.x / kWarpLanes; row < end; row += kNormWarps) {
    Piece to_sum;
    if (g.sum != nullptr) to_sum.Load(g.sum + row * width, width);
    if (p.gamma != nullptr) {
      Piece to_normed, h;
      to_normed.Load(g.normed + row * width, width);
      h.Load(p.sum + row * width, width);
      const float mean = p.mean[row], inverse = p.inverse_deviation[row];
      float g_sum = 0, gh_sum = 0;
      ForEach<kVector, kChunks>(width, [&](int c, int v) {
        h.at[c][v] = (h.at[c][v] - mean) * inverse;
        const float scaled = to_normed.at[c][v] * gamma.at[c][v];
        g_sum += scaled;
        gh_sum += scaled * h.at[c][v];
        to_gamma.at[c][v] += to_normed.at[c][v] * h.at[c][v];
        to_beta.at[c][v] += to_normed.at[c][v];
      });
      const float mean_g = WarpSum(g_sum) / static_cast<float>(width);
      const float mean_gh = WarpSum(gh_sum) / static_cast<float>(width);
      ForEach<kVector, kChunks>(width, [&](int c, int v) {
        to_sum.at[c][v] +=
            inverse * (to_normed.at[c][v] * gamma.at[c][v] - mean_g - h.at[c][v] * mean_gh);
      });
    }
    if (g.residual != nullptr) to_sum.Store(g.residual + row * width, width);
    if (g.product == nullptr && p.bias == nullptr) continue;
    const std::uint32_t row_first = FirstOfRow(dropout, row, width);
    ForEach<kVector, kChunks>(width, [&](int c, int v) {
      const std::uint32_t first = row_first + static_cast<std::uint32_t>(Piece::Column(c));
      to_sum.at[c][v] *= SignedFactor(dropout, p.sign, first, v);
      to_bias.at[c][v] += to_sum.at[c][v];
    });
    if (g.product != nullptr) to_sum.Store(g.product + row * width, width);
  }
  float* const partial = g.partial + blockIdx.x * 3 * width;
  if (p.gamma != nullptr) {
    AddWarps(to_gamma, shared, width, partial);
    AddWarps(to_beta, shared, width, partial + width);
  }
  if (p.bias != nullptr) AddWarps(to_bias, shared, width, partial + 2 * width);
}

// Launchers choose the kernel with the functions below.

template <class Element>
bool Aligned(const ResidualNorm<Element>& p) {
  return RowsAligned<Element>(p.width, p.residual, p.product, p.sum, p.normed) &&
         RowsAligned<float>(p.width, p.bias, p.gamma, p.beta) && AlignedAlike(p.members);
}

// Calls launch(vector, chunks) with two integral constants, for the smallest kernel that can hold a
// row.
template <class Element, class Launch>
void WithPieces(std::int64_t width, bool aligned, const Launch& launch) {
  constexpr int kVector = 16 / sizeof(Element);
  constexpr std::integral_constant<int, kVector> vector;
  constexpr std::integral_constant<int, 1> single;
  if (aligned && width <= 256) return launch(vector, std::integral_constant<int, 8 / kVector>());
  if (aligned && width <= 512) return launch(vector, std::integral_constant<int, 16 / kVector>());
  if (aligned) return launch(vector, std::integral_constant<int, 32 / kVector>());
  if (width <= 256) return launch(single, std::integral_constant<int, 8>());
  return launch(single, std::integral_constant<int, 32>());
}

}  // namespace pelab::trainer
