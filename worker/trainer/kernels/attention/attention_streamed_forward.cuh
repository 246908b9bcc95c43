// Attention forward on tensor cores for any number of keys. A block has one head and kStreamedRows
// of its query rows, each warp 16 of them. Keys and values pass through shared memory in tiles.
// The weights are relative to the largest logit so far, and what was summed before is scaled when
// a larger one comes (Dao 2023, algorithm 1).
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention_tensor.cuh"

namespace pelab::trainer {

inline constexpr int kStreamedWarps = 8;  // per block
inline constexpr int kStreamedThreads = 32 * kStreamedWarps;
inline constexpr int kStreamedRows = kTensorRows * kStreamedWarps;  // in fragments at a time
inline constexpr int kStreamedTile = 64;  // rows in shared memory that all warps go through

// Widths are those of the problem.
template <int kWidth_, int kValueWidth_>
struct StreamedShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kValueWidth = kValueWidth_;
  static constexpr int kRowBytes = 2 * (kMatrixStride<kWidth> + kMatrixStride<kValueWidth>);
};

// The dynamic shared memory of a block: offsets in bytes.
template <class Shape>
struct StreamedForwardLayout {
  int queries, keys, values;  // matrices
  int table;                  // the head's diagonal, in floats
  int end;

  __host__ __device__ explicit StreamedForwardLayout(const FusedAttention<Bf16>& p) {
    queries = 0;
    keys = queries + 2 * kStreamedRows * kMatrixStride<Shape::kWidth>;
    values = keys + 2 * kStreamedTile * kMatrixStride<Shape::kWidth>;
    table = values + 2 * kStreamedTile * kMatrixStride<Shape::kValueWidth>;
    end = table + (p.diagonal == nullptr ? 0 : 4 * (2 * static_cast<int>(p.keys) - 1));
  }
};

// Every key that some of the `count` rows from `first` on sees is below this.
__device__ __forceinline__ int LimitOfRows(const HeadLogits& logits, int first, int count) {
  return first >= logits.rows ? 0 : logits.Limit(min(first + count, logits.rows) - 1);
}

// What a warp has summed of its rows so far; `most` and `sum` as in FinishForward.
template <int kValueWidth>
struct StreamedSums {
  float most[2] = {kNoLogit, kNoLogit};
  float sum[2] = {};
  float out[kValueWidth / 8][4] = {};
};

// Adds the tile of keys and values whose first key is `first_key`.
template <class Shape>
__device__ __forceinline__ void AddTile(const HeadLogits& logits, const TensorRows& rows,
                                        float scale,
                                        const std::uint32_t (&query)[Shape::kWidth / 16][4],
                                        const Bf16* keys, const Bf16* values, int first_key,
                                        StreamedSums<Shape::kValueWidth>* sums) {
  constexpr int kSteps = kStreamedTile / 16;
  float weights[2 * kSteps][4];
  float most[2] = {sums->most[0], sums->most[1]};
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    const int key = first_key + 16 * k;
    if (key >= rows.limit) continue;
    TimesRows<Shape::kWidth>(query, keys, 16 * k, weights[2 * k], weights[2 * k + 1]);
    FinishLogits(logits, rows, scale, key, weights[2 * k], weights[2 * k + 1]);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      most[e / 2] = fmaxf(most[e / 2], fmaxf(weights[2 * k][e], weights[2 * k + 1][e]));
    }
  }
  float base[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    most[half] = RowMax(most[half]);
    base[half] = most[half] == kNoLogit ? 0 : most[half];
    const float factor = Exp2(sums->most[half] - base[half]);
    sums->most[half] = most[half];
    sums->sum[half] *= factor;
#pragma unroll
    for (int c = 0; c < Shape::kValueWidth / 8; ++c) {
      sums->out[c][2 * half] *= factor;
      sums->out[c][2 * half + 1] *= factor;
    }
  }
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    const int key = first_key + 16 * k;
    if (key >= rows.limit) continue;
    float(&left)[4] = weights[2 * k];
    float(&right)[4] = weights[2 * k + 1];
    const std::uint32_t bits = logits.Drops() ? KeptBits(logits, rows, key) : 0xffU;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      left[e] = Exp2(left[e] - base[e / 2]);
      right[e] = Exp2(right[e] - base[e / 2]);
      sums->sum[e / 2] += left[e] + right[e];
      if ((bits >> e & 1U) == 0) left[e] = 0;
      if ((bits >> (4 + e) & 1U) == 0) right[e] = 0;
    }
    std::uint32_t packed[4];
    Packed(left, right, packed);
    AddWeighted<Shape::kValueWidth>(packed, values, 16 * k, sums->out);
  }
}

// Grid: (heads of all sequences, ceil(rows / kStreamedRows)).
template <int kWidth, int kValueWidth>
__global__ void __launch_bounds__(kStreamedThreads)
    StreamedAttentionForwardKernel(PELAB_GRID_CONSTANT FusedAttention<Bf16> p,
                                   PELAB_GRID_CONSTANT AttentionPlan plan) {
  using Shape = StreamedShape<kWidth, kValueWidth>;
  PELAB_DYNAMIC_SHARED(unsigned char, shared);
  const StreamedForwardLayout<Shape> layout(p);
  const auto matrix = [&](int at) { return reinterpret_cast<Bf16*>(shared + at); };
  const HeadPlace place(plan, p);
  const HeadLogits logits(p, place, plan, reinterpret_cast<float*>(shared + layout.table));
  const int group = static_cast<int>(blockIdx.y) * kStreamedRows;
  const int in_group = static_cast<int>(threadIdx.x) / 32 * kTensorRows;  // the warp's first row
  const HeadChanges changes(p, place, logits);
  FillRows<kWidth>(HeadView<const Bf16>(p.query, place, p.width, true), changes.query, place, plan,
                   group, kStreamedRows, logits.rows, matrix(layout.queries));
  __syncthreads();
  const TensorRows rows(logits, group + in_group);
  std::uint32_t query[kWidth / 16][4];
  LoadRows<kWidth>(matrix(layout.queries), in_group, query);
  StreamedSums<kValueWidth> sums;
  const int limit = LimitOfRows(logits, group, kStreamedRows);
  for (int key = 0; key < limit; key += kStreamedTile) {
    __syncthreads();  // every warp is done with the last tile
    FillRows<kWidth>(HeadView<const Bf16>(p.key, place, p.width, true), changes.key, place, plan,
                     key, kStreamedTile, logits.keys, matrix(layout.keys));
    FillRows<kValueWidth>(HeadView<const Bf16>(p.value, place, p.value_width, true), changes.value,
                          place, plan, key, kStreamedTile, logits.keys, matrix(layout.values));
    __syncthreads();
    if (key >= rows.limit) continue;
    AddTile<Shape>(logits, rows, p.scale * kLog2E, query, matrix(layout.keys),
                   matrix(layout.values), key, &sums);
  }
  if (rows.first >= logits.rows) return;
  FinishForward<kValueWidth>(p, place, logits, rows, sums.most, sums.sum, sums.out);
}

}  // namespace pelab::trainer
