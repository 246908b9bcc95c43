// Attention backward on tensor cores for any number of keys; one block per head. First each warp
// has 16 query rows, and keys and values pass through shared memory (for dq and the diagonal's
// gradient). Then each warp has 16 keys, and queries and output gradients pass (for dk and dv).
// Both halves compute the weights again from the logits, and D comes from the output.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention_streamed_forward.cuh"

namespace pelab::trainer {

// The dynamic shared memory of a block: offsets in bytes.
template <class Shape>
struct StreamedBackwardLayout {
  static constexpr int kSlopeStride = kStreamedTile + 8;
  static constexpr int kBiases = 2 * Shape::kWidth + Shape::kValueWidth;
  int wide, narrow;            // matrices of what is in fragments: queries and output gradients,
                               // then keys and values
  int wide_tile, narrow_tile;  // of what passes
  int slopes;                  // dl of a tile, if the diagonal has a gradient
  int statistics;              // pairs (log-sum-exp / log 2, D), of kStreamedRows rows
  int biases;                  // sums for the biases of queries, keys, values, by warp
  int table;                   // the diagonal
  int bins;                    // its gradient
  int end;

  __host__ __device__ StreamedBackwardLayout(const FusedAttention<Bf16>& p,
                                             const FusedAttentionGradients<Bf16>& g) {
    const int diagonal = 4 * (2 * static_cast<int>(p.keys) - 1);
    wide = 0;
    narrow = wide + 2 * kStreamedRows * kMatrixStride<Shape::kWidth>;
    wide_tile = narrow + 2 * kStreamedRows * kMatrixStride<Shape::kValueWidth>;
    narrow_tile = wide_tile + 2 * kStreamedTile * kMatrixStride<Shape::kWidth>;
    slopes = narrow_tile + 2 * kStreamedTile * kMatrixStride<Shape::kValueWidth>;
    statistics = slopes + (g.diagonal == nullptr ? 0 : 2 * kStreamedRows * kSlopeStride);
    biases = statistics + 8 * kStreamedRows;
    table = biases + 4 * kStreamedWarps * kBiases;
    bins = table + (p.diagonal == nullptr ? 0 : diagonal);
    end = bins + (g.diagonal == nullptr ? 0 : diagonal);
  }
};

template <class Shape>
struct StreamedBackwardHead {
  const FusedAttention<Bf16>& p;
  const FusedAttentionGradients<Bf16>& g;
  const AttentionPlan& plan;
  const HeadPlace& place;
  const HeadLogits& logits;
  const HeadChanges& changes;
  Bf16 *wide, *narrow, *wide_tile, *narrow_tile, *slopes;
  float2* statistics;
  float* biases;  // of the warp
  float* bins;
  float kept;    // the factor of elements that are not dropped
  int in_group;  // the first row of the warp among those that are in fragments
};

// Sums do (o + what rounding removed from it) over eight columns.
__device__ __forceinline__ float DotOfEight(uint4 gradient, uint4 out) {
  const std::uint32_t a[4] = {gradient.x, gradient.y, gradient.z, gradient.w};
  const std::uint32_t b[4] = {out.x, out.y, out.z, out.w};
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum = fmaf(LowHalf(a[i]), LowHalf(b[i]), sum);
    sum = fmaf(HighHalf(a[i]), HighHalf(b[i]), sum);
  }
  return sum;
}

// The statistics of `count` rows from `first` on; those of rows that do not exist are 0.
template <class Shape>
__device__ __forceinline__ void FillStatistics(const StreamedBackwardHead<Shape>& head, int first,
                                               int count) {
  const HeadView<const Bf16> gradients(head.g.out, head.place, head.p.value_width, true);
  const HeadView<Bf16> outs(head.p.out, head.place, head.p.value_width, true),
      rests(head.p.out_rest, head.place, head.p.value_width, true);
  for (int i = head.place.thread; i < count; i += head.plan.threads) {
    const int row = first + i;
    float2 found = make_float2(0, 0);
    if (row < head.logits.rows) {
      found.x = head.p.log_sum_exp[head.place.index * head.p.rows + row] * kLog2E;
#pragma unroll
      for (int c = 0; c < Shape::kValueWidth; c += 8) {
        const uint4 gradient = *reinterpret_cast<const uint4*>(gradients.Row(row) + c);
        found.y += DotOfEight(gradient, *reinterpret_cast<const uint4*>(outs.Row(row) + c));
        if (rests.rows == nullptr) continue;
        found.y += DotOfEight(gradient, *reinterpret_cast<const uint4*>(rests.Row(row) + c));
      }
    }
    head.statistics[i] = found;
  }
}

// Copies `count` queries and output gradients, from row `first` on, and makes their statistics.
template <class Shape>
__device__ __forceinline__ void FillQueries(const StreamedBackwardHead<Shape>& head, int first,
                                            int count, Bf16* wide, Bf16* narrow) {
  FillRows<Shape::kWidth>(HeadView<const Bf16>(head.p.query, head.place, head.p.width, true),
                          head.changes.query, head.place, head.plan, first, count, head.logits.rows,
                          wide);
  FillRows<Shape::kValueWidth>(
      HeadView<const Bf16>(head.g.out, head.place, head.p.value_width, true), head.changes.none,
      head.place, head.plan, first, count, head.logits.rows, narrow);
  FillStatistics(head, first, count);
}

// Copies `count` keys and values, from key `first` on.
template <class Shape>
__device__ __forceinline__ void FillKeys(const StreamedBackwardHead<Shape>& head, int first,
                                         int count, Bf16* wide, Bf16* narrow) {
  FillRows<Shape::kWidth>(HeadView<const Bf16>(head.p.key, head.place, head.p.width, true),
                          head.changes.key, head.place, head.plan, first, count, head.logits.keys,
                          wide);
  FillRows<Shape::kValueWidth>(
      HeadView<const Bf16>(head.p.value, head.place, head.p.value_width, true), head.changes.value,
      head.place, head.plan, first, count, head.logits.keys, narrow);
}

// dq of the warp's rows from the tile of keys and values whose first key is `first_key`.
template <class Shape>
__device__ __forceinline__ void AddToQueries(
    const StreamedBackwardHead<Shape>& head, const TensorRows& rows,
    const std::uint32_t (&query)[Shape::kWidth / 16][4],
    const std::uint32_t (&out_gradient)[Shape::kValueWidth / 16][4], int first_key,
    float (&gradient)[Shape::kWidth / 8][4]) {
  const HeadLogits& logits = head.logits;
  const int row = head.in_group + static_cast<int>(threadIdx.x) % 32 / 4;
  const float2 of_rows[2] = {head.statistics[row], head.statistics[row + 8]};
#pragma unroll
  for (int k = 0; k < kStreamedTile / 16; ++k) {
    const int key = first_key + 16 * k;
    if (key >= rows.limit) continue;
    float left[4], right[4], to_left[4], to_right[4];
    TimesRows<Shape::kWidth>(query, head.wide_tile, 16 * k, left, right);
    FinishLogits(logits, rows, head.p.scale * kLog2E, key, left, right);
    const std::uint32_t bits = logits.Drops() ? KeptBits(logits, rows, key) : 0xffU;
    TimesRows<Shape::kValueWidth>(out_gradient, head.narrow_tile, 16 * k, to_left, to_right);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float2 of_row = of_rows[e / 2];
      const bool left_kept = (bits >> e & 1U) != 0, right_kept = (bits >> (4 + e) & 1U) != 0;
      to_left[e] = Exp2(left[e] - of_row.x) * ((left_kept ? to_left[e] * head.kept : 0) - of_row.y);
      to_right[e] =
          Exp2(right[e] - of_row.x) * ((right_kept ? to_right[e] * head.kept : 0) - of_row.y);
    }
    std::uint32_t packed[4];
    Packed(to_left, to_right, packed);
    if (head.g.diagonal != nullptr) {
      StorePacked<StreamedBackwardLayout<Shape>::kSlopeStride>(packed, head.slopes, row,
                                                               16 * k + rows.column);
    }
    AddWeighted<Shape::kWidth>(packed, head.wide_tile, 16 * k, gradient);
  }
}

// Adds dl of the group's rows and a tile of keys to the bins. Each diagonal has one thread.
template <class Shape>
__device__ __forceinline__ void AddDiagonals(const StreamedBackwardHead<Shape>& head, int group,
                                             int first_key) {
  constexpr int kStride = StreamedBackwardLayout<Shape>::kSlopeStride;
  const HeadLogits& logits = head.logits;
  const int rows_end = min(group + kStreamedRows, logits.rows);
  for (int i = head.place.thread; i < kStreamedRows + kStreamedTile - 1; i += head.plan.threads) {
    const int shift = first_key - (group + kStreamedRows - 1) + i;  // key - row
    const int begin = max(group, first_key - shift);
    const int end = min(rows_end, first_key + kStreamedTile - shift);
    float sum = 0;
    for (int row = begin; row < end; ++row) {
      const int key = row + shift;
      if (key >= logits.Limit(row)) continue;
      sum += ToFloat(head.slopes[(row - group) * kStride + key - first_key]);
    }
    const int bin = shift - logits.first_position + logits.keys - 1;
    if (begin < end && bin >= 0 && bin < 2 * logits.keys - 1) head.bins[bin] += sum;
  }
}

template <class Shape>
__device__ __forceinline__ void StreamedBackwardQueries(const StreamedBackwardHead<Shape>& head) {
  const HeadLogits& logits = head.logits;
  for (int group = 0; group < logits.rows; group += kStreamedRows) {
    __syncthreads();  // every warp is done with the last group
    FillQueries(head, group, kStreamedRows, head.wide, head.narrow);
    __syncthreads();
    const TensorRows rows(logits, group + head.in_group);
    std::uint32_t query[Shape::kWidth / 16][4], out_gradient[Shape::kValueWidth / 16][4];
    LoadRows<Shape::kWidth>(head.wide, head.in_group, query);
    LoadRows<Shape::kValueWidth>(head.narrow, head.in_group, out_gradient);
    float gradient[Shape::kWidth / 8][4] = {};
    const int limit = LimitOfRows(logits, group, kStreamedRows);
    for (int key = 0; key < limit; key += kStreamedTile) {
      __syncthreads();  // every warp is done with the last tile
      FillKeys(head, key, kStreamedTile, head.wide_tile, head.narrow_tile);
      __syncthreads();
      if (key < rows.limit) AddToQueries(head, rows, query, out_gradient, key, gradient);
      if (head.g.diagonal == nullptr) continue;
      __syncthreads();  // every warp has stored its slopes
      AddDiagonals(head, group, key);
    }
    StoreTile<Shape::kWidth>(HeadView<Bf16>(head.g.query, head.place, head.p.width, true),
                             head.changes.query, rows.first, logits.rows, head.p.scale, gradient);
    if (head.g.query_bias != nullptr) SumTile<Shape::kWidth, true>(gradient, head.biases);
  }
}

// A logit of the product x, in units of log 2.
__device__ __forceinline__ float LogitOf(const HeadLogits& logits, float x, int row, int key) {
  if (key >= logits.Limit(row)) return kNoLogit;
  const int distance = key - row - logits.first_position;
  if (logits.diagonal != nullptr) x += logits.diagonal[distance];
  if (logits.sloped) x -= logits.slope * static_cast<float>(abs(distance));
  return x;
}

// dk and dv of the warp's keys from 16 rows of the tile of queries and output gradients. `in_tile`
// and `first_row`: the first of these rows in the tile and in the head. Fragments have a key in
// each row and a query in each column.
template <class Shape>
__device__ __forceinline__ void AddToKeys(const StreamedBackwardHead<Shape>& head,
                                          const std::uint32_t (&key)[Shape::kWidth / 16][4],
                                          const std::uint32_t (&value)[Shape::kValueWidth / 16][4],
                                          int first_key, int in_tile, int first_row,
                                          float (&to_key)[Shape::kWidth / 8][4],
                                          float (&to_value)[Shape::kValueWidth / 8][4]) {
  const HeadLogits& logits = head.logits;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float weights[2][4], slopes[2][4];
  TimesRows<Shape::kWidth>(key, head.wide_tile, in_tile, weights[0], weights[1]);
  TimesRows<Shape::kValueWidth>(value, head.narrow_tile, in_tile, slopes[0], slopes[1]);
#pragma unroll
  for (int side = 0; side < 2; ++side) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int column = 8 * side + lane % 4 * 2 + e % 2;
      const int row = first_row + column, at = first_key + lane / 4 + e / 2 * 8;
      const float2 of_row = head.statistics[in_tile + column];
      float &weight = weights[side][e], &slope = slopes[side][e];
      weight = Exp2(LogitOf(logits, weight * (head.p.scale * kLog2E), row, at) - of_row.x);
      const bool kept = !logits.Drops() || logits.Keeps(row, at);
      slope = weight * ((kept ? slope * head.kept : 0) - of_row.y);
      if (!kept) weight = 0;
    }
  }
  std::uint32_t packed[4];
  Packed(weights[0], weights[1], packed);
  AddWeighted<Shape::kValueWidth>(packed, head.narrow_tile, in_tile, to_value);
  Packed(slopes[0], slopes[1], packed);
  AddWeighted<Shape::kWidth>(packed, head.wide_tile, in_tile, to_key);
}

template <class Shape>
__device__ __forceinline__ void StreamedBackwardKeys(const StreamedBackwardHead<Shape>& head) {
  const HeadLogits& logits = head.logits;
  for (int group = 0; group < logits.keys; group += kStreamedRows) {
    __syncthreads();  // every warp is done with the last group
    FillKeys(head, group, kStreamedRows, head.wide, head.narrow);
    __syncthreads();
    const int first_key = group + head.in_group;
    std::uint32_t key[Shape::kWidth / 16][4], value[Shape::kValueWidth / 16][4];
    LoadRows<Shape::kWidth>(head.wide, head.in_group, key);
    LoadRows<Shape::kValueWidth>(head.narrow, head.in_group, value);
    float to_key[Shape::kWidth / 8][4] = {}, to_value[Shape::kValueWidth / 8][4] = {};
    for (int row = 0; row < logits.rows; row += kStreamedTile) {
      if (LimitOfRows(logits, row, kStreamedTile) <= group) continue;  // for all warps
      __syncthreads();  // every warp is done with the last tile
      FillQueries(head, row, kStreamedTile, head.wide_tile, head.narrow_tile);
      __syncthreads();
#pragma unroll 1
      for (int in_tile = 0; in_tile < kStreamedTile; in_tile += kTensorRows) {
        if (first_key >= TensorRows::Limit(logits, row + in_tile)) continue;
        AddToKeys(head, key, value, first_key, in_tile, row + in_tile, to_key, to_value);
      }
    }
    StoreKeyGradients<Shape, true>(head, head.changes, first_key, to_key, to_value);
  }
}

template <int kWidth, int kValueWidth>
__global__ void __launch_bounds__(kStreamedThreads)
    StreamedAttentionBackwardKernel(PELAB_GRID_CONSTANT FusedAttention<Bf16> p,
                                    PELAB_GRID_CONSTANT FusedAttentionGradients<Bf16> g,
                                    PELAB_GRID_CONSTANT AttentionPlan plan) {
  using Shape = StreamedShape<kWidth, kValueWidth>;
  using Layout = StreamedBackwardLayout<Shape>;
  PELAB_DYNAMIC_SHARED(unsigned char, shared);
  const Layout layout(p, g);
  const HeadPlace place(plan, p);
  const auto matrix = [&](int at) { return reinterpret_cast<Bf16*>(shared + at); };
  const auto floats = [&](int at) { return reinterpret_cast<float*>(shared + at); };
  const HeadLogits logits(p, place, plan, floats(layout.table));
  const HeadChanges changes(p, place, logits);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const StreamedBackwardHead<Shape> head{p,
                                         g,
                                         plan,
                                         place,
                                         logits,
                                         changes,
                                         matrix(layout.wide),
                                         matrix(layout.narrow),
                                         matrix(layout.wide_tile),
                                         matrix(layout.narrow_tile),
                                         matrix(layout.slopes),
                                         reinterpret_cast<float2*>(shared + layout.statistics),
                                         floats(layout.biases) + warp * Layout::kBiases,
                                         floats(layout.bins),
                                         logits.Drops() ? logits.dropout.kept : 1,
                                         warp * kTensorRows};
  const int bins = g.diagonal == nullptr ? 0 : 2 * logits.keys - 1;
  for (int i = place.thread; i < kStreamedWarps * Layout::kBiases; i += plan.threads) {
    floats(layout.biases)[i] = 0;
  }
  for (int i = place.thread; i < bins; i += plan.threads) head.bins[i] = 0;
  StreamedBackwardQueries(head);
  StreamedBackwardKeys(head);
  __syncthreads();
  for (int i = place.thread; i < bins; i += plan.threads) {
    g.diagonal[place.index * bins + i] = head.bins[i];
  }
  StoreBiasSums<Shape>(p, g, place, floats(layout.biases), kStreamedWarps, kStreamedWarps);
}

}  // namespace pelab::trainer
