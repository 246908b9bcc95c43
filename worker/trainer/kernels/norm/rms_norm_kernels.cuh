// The passes of rms_norm.h on CUDA. As in residual_norm_kernels.cuh, a warp processes a row and has
// it in its lanes' registers. Grids: (blocks of rows, 1, members).
#pragma once

#include "worker/trainer/kernels/norm/residual_norm_kernels.cuh"
#include "worker/trainer/kernels/norm/rms_norm.h"

namespace pelab::trainer {

template <class Element, int kVector, int kChunks>
__global__ void __launch_bounds__(kNormThreads, kBlocksAtOnce<kVector, kChunks, 4>)
    RmsNormForwardKernel(RmsNorm<Element> all) {
  using Piece = RowPiece<kVector, kChunks>;
  const RmsNorm<Element> p = MemberOf(all, blockIdx.z);
  const std::int64_t width = p.width;
  Piece gamma;
  gamma.Load(p.gamma, width);
  const std::int64_t warp = std::int64_t{blockIdx.x} * kNormWarps + threadIdx.x / kWarpLanes;
  for (int i = 0; i < kForwardRows; ++i) {
    const std::int64_t row = warp * kForwardRows + i;
    if (row >= p.rows) return;
    Piece x;
    x.Load(p.x + row * p.x_stride, width);
    float squares = 0;
    ForEach<kVector, kChunks>(width, [&](int c, int v) { squares += x.at[c][v] * x.at[c][v]; });
    const float inverse = 1 / sqrtf(WarpSum(squares) / static_cast<float>(width) + p.epsilon);
    ForEach<kVector, kChunks>(width, [&](int c, int v) { x.at[c][v] *= inverse * gamma.at[c][v]; });
    x.Store(p.normed + row * width, width);
    if (threadIdx.x % kWarpLanes == 0 && p.inverse_size != nullptr) p.inverse_size[row] = inverse;
  }
}

// Each block processes kNormBlockRows rows. Dynamic shared memory: kNormWarps * width floats.
template <class Element, int kVector, int kChunks>
__global__ void __launch_bounds__(kNormThreads, kBlocksAtOnce<kVector, kChunks, 3>)
    RmsNormBackwardKernel(RmsNorm<Element> all, RmsNormGradients<Element> to) {
  using Piece = RowPiece<kVector, kChunks>;
  const RmsNorm<Element> p = MemberOf(all, blockIdx.z);
  const RmsNormGradients<Element> g = MemberOf(to, all, blockIdx.z);
  PELAB_DYNAMIC_SHARED(float, shared);
  const std::int64_t width = p.width;
  Piece gamma, to_gamma;
  gamma.Load(p.gamma, width);
  const std::int64_t begin = std::int64_t{blockIdx.x} * kNormBlockRows;
  const std::int64_t end = min(begin + kNormBlockRows, p.rows);
  for (std::int64_t row = begin + threadIdx.x / kWarpLanes; row < end; row += kNormWarps) {
    Piece h, to_x;
    h.Load(p.x + row * p.x_stride, width);
    to_x.Load(g.normed + row * width, width);
    const float inverse = p.inverse_size[row];
    float sum = 0;
    ForEach<kVector, kChunks>(width, [&](int c, int v) {
      h.at[c][v] *= inverse;
      to_gamma.at[c][v] += to_x.at[c][v] * h.at[c][v];
      to_x.at[c][v] *= gamma.at[c][v];
      sum += to_x.at[c][v] * h.at[c][v];
    });
    const float mean = WarpSum(sum) / static_cast<float>(width);
    ForEach<kVector, kChunks>(width, [&](int c, int v) {
      to_x.at[c][v] = (to_x.at[c][v] - h.at[c][v] * mean) * inverse;
    });
    to_x.Store(g.x + row * p.x_stride, width);
  }
  AddWarps(to_gamma, shared, width, g.partial + blockIdx.x * width);
}

// Launchers choose the kernel with this function and with WithPieces.
template <class Element>
bool Aligned(const RmsNorm<Element>& p) {
  return RowsAligned<Element>(p.width, p.x, p.normed) && RowsAligned<Element>(p.x_stride, p.x) &&
         RowsAligned<float>(p.width, p.gamma) && AlignedAlike(p.members);
}

}  // namespace pelab::trainer
