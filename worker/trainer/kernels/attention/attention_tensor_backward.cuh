// Attention backward on tensor cores, one block per head. First each warp takes 16 query rows,
// computes the weights again and their gradients dl, uses them for dq, and leaves both in shared
// memory. It reads which weights dropout keeps from what forward has stored. Then each warp takes
// 16 keys and reads weights and gradients from there, transposed, for dk and dv.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention_tensor.cuh"

namespace pelab::trainer {

// The layout of shared memory, as offsets in bytes.
template <class Shape>
struct TensorBackwardLayout {
  static constexpr int kStride = kMatrixStride<Shape::kKeys>;  // of the weights and their gradients

  int queries, keys, values, out_gradients;  // matrices
  int weights, slopes;                       // (T', T): weights with dropout mask, and dl
  int biases;                                // sums for biases, in floats; kBiases per warp
  int table;                                 // the diagonal, in floats
  int end;
  static constexpr int kBiases = 2 * Shape::kWidth + Shape::kValueWidth;

  __host__ __device__ explicit TensorBackwardLayout(const FusedAttention<Bf16>& p) {
    const int rows = WholeTiles(static_cast<int>(p.rows));
    const int columns = WholeTiles(static_cast<int>(p.keys));
    queries = 0;
    keys = queries + 2 * rows * kMatrixStride<Shape::kWidth>;
    values = keys + 2 * columns * kMatrixStride<Shape::kWidth>;
    out_gradients = values + 2 * columns * kMatrixStride<Shape::kValueWidth>;
    weights = out_gradients + 2 * rows * kMatrixStride<Shape::kValueWidth>;
    slopes = weights + 2 * rows * kStride;
    biases = slopes + 2 * rows * kStride;
    table = biases + 4 * Shape::kWarps * kBiases;
    end = table + (p.diagonal == nullptr ? 0 : 4 * (2 * static_cast<int>(p.keys) - 1));
  }
};

template <class Shape>
struct TensorBackwardHead {
  const FusedAttention<Bf16>& p;
  const FusedAttentionGradients<Bf16>& g;
  const HeadPlace& place;
  const HeadLogits& logits;
  Bf16 *queries, *keys, *values, *out_gradients, *weights, *slopes;
  float* biases;  // of the warp
  float kept;     // the factor of elements that are not dropped
};

template <class Shape>
__device__ __forceinline__ void TensorBackwardQueries(const TensorBackwardHead<Shape>& head,
                                                      const RowChange& change, int first_row) {
  constexpr int kSteps = Shape::kKeys / 16;
  constexpr int kStride = TensorBackwardLayout<Shape>::kStride;
  const HeadLogits& logits = head.logits;
  const TensorRows rows(logits, first_row);
  float log_sum_exp[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = min(rows.row + 8 * half, logits.rows - 1);
    log_sum_exp[half] = head.p.log_sum_exp[head.place.index * head.p.rows + row] * kLog2E;
  }

  float weights[2 * kSteps][4];
  KeptWeights<Shape> kept;
  if (logits.Drops()) kept.Load(KeptWeights<Shape>::Place(head.p, head.place, first_row));
  float mean[2] = {};  // D
  std::uint32_t query[Shape::kWidth / 16][4];
  std::uint32_t out_gradient[Shape::kValueWidth / 16][4];
  LoadRows<Shape::kWidth>(head.queries, first_row, query);
  LoadRows<Shape::kValueWidth>(head.out_gradients, first_row, out_gradient);
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    if (16 * k >= rows.limit) continue;
    float(&left)[4] = weights[2 * k];
    float(&right)[4] = weights[2 * k + 1];
    TimesRows<Shape::kWidth>(query, head.keys, 16 * k, left, right);
    FinishLogits(logits, rows, head.p.scale * kLog2E, 16 * k, left, right);
    const std::uint32_t bits = logits.Drops() ? kept.At(k) : 0xffU;
    float to_left[4], to_right[4];
    TimesRows<Shape::kValueWidth>(out_gradient, head.values, 16 * k, to_left, to_right);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      left[e] = Exp2(left[e] - log_sum_exp[e / 2]);
      right[e] = Exp2(right[e] - log_sum_exp[e / 2]);
      if ((bits >> e & 1U) != 0) mean[e / 2] = fmaf(left[e], to_left[e], mean[e / 2]);
      if ((bits >> (4 + e) & 1U) != 0) mean[e / 2] = fmaf(right[e], to_right[e], mean[e / 2]);
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) mean[half] = RowSum(mean[half]) * head.kept;

  // The products with the values are computed twice, because this costs less than the registers to
  // keep them.
  float gradient[Shape::kWidth / 8][4] = {};
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    if (16 * k >= rows.limit) continue;
    float(&left)[4] = weights[2 * k];
    float(&right)[4] = weights[2 * k + 1];
    float to_left[4], to_right[4];
    TimesRows<Shape::kValueWidth>(out_gradient, head.values, 16 * k, to_left, to_right);
    const std::uint32_t bits = logits.Drops() ? kept.At(k) : 0xffU;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const bool left_kept = (bits >> e & 1U) != 0;
      const bool right_kept = (bits >> (4 + e) & 1U) != 0;
      to_left[e] = left[e] * ((left_kept ? to_left[e] * head.kept : 0) - mean[e / 2]);
      to_right[e] = right[e] * ((right_kept ? to_right[e] * head.kept : 0) - mean[e / 2]);
      if (!left_kept) left[e] = 0;
      if (!right_kept) right[e] = 0;
    }
    std::uint32_t packed[4];
    Packed(left, right, packed);
    StorePacked<kStride>(packed, head.weights, rows.row, 16 * k + rows.column);
    Packed(to_left, to_right, packed);
    StorePacked<kStride>(packed, head.slopes, rows.row, 16 * k + rows.column);
    AddWeighted<Shape::kWidth>(packed, head.keys, 16 * k, gradient);
  }
  StoreTile<Shape::kWidth>(HeadView<Bf16>(head.g.query, head.place, head.p.width, true), change,
                           first_row, logits.rows, head.p.scale, gradient);
  if (head.g.query_bias != nullptr) SumTile<Shape::kWidth>(gradient, head.biases);
}

template <class Shape>
__device__ __forceinline__ void TensorBackwardKeys(const TensorBackwardHead<Shape>& head,
                                                   const HeadChanges& changes, int first_key) {
  constexpr int kStride = TensorBackwardLayout<Shape>::kStride;
  const HeadLogits& logits = head.logits;
  float to_key[Shape::kWidth / 8][4] = {};
  float to_value[Shape::kValueWidth / 8][4] = {};
  const TilePlace at = AcrossFirst();  // for the transposed tile
#pragma unroll 1
  for (int row = 0; row < logits.rows; row += kTensorRows) {
    if (first_key >= TensorRows::Limit(logits, row)) continue;  // no weights were stored there
    std::uint32_t part[4];
    LoadMatrix4Transposed(part, head.weights + (row + at.row) * kStride + first_key + at.column);
    AddWeighted<Shape::kValueWidth>(part, head.out_gradients, row, to_value);
    LoadMatrix4Transposed(part, head.slopes + (row + at.row) * kStride + first_key + at.column);
    AddWeighted<Shape::kWidth>(part, head.queries, row, to_key);
  }
  StoreKeyGradients<Shape, false>(head, changes, first_key, to_key, to_value);
}

// One thread per diagonal; neighboring threads read neighboring elements.
template <class Shape>
__device__ __forceinline__ void SumDiagonals(const TensorBackwardHead<Shape>& head) {
  const HeadLogits& logits = head.logits;
  const int count = 2 * logits.keys - 1;
  for (int i = head.place.thread; i < count; i += Shape::kThreads) {
    const int shift = i - (logits.keys - 1) + logits.first_position;  // key - row
    float sum = 0;
#pragma unroll 4
    for (int row = 0; row < logits.rows; ++row) {
      const int key = row + shift;
      if (key >= 0 && key < logits.Limit(row)) {
        sum += ToFloat(head.slopes[row * TensorBackwardLayout<Shape>::kStride + key]);
      }
    }
    head.g.diagonal[head.place.index * count + i] = sum;
  }
}

template <int kWidth, int kValueWidth, int kKeys>
__global__ void __launch_bounds__(2 * kKeys, kWidth + kValueWidth > 48 ? 1 : 2)
    TensorAttentionBackwardKernel(PELAB_GRID_CONSTANT FusedAttention<Bf16> p,
                                  PELAB_GRID_CONSTANT FusedAttentionGradients<Bf16> g,
                                  PELAB_GRID_CONSTANT AttentionPlan plan) {
  using Shape = TensorShape<kWidth, kValueWidth, kKeys>;
  using Layout = TensorBackwardLayout<Shape>;
  PELAB_DYNAMIC_SHARED(unsigned char, shared);
  const Layout layout(p);
  const HeadPlace place(plan, p);
  const HeadLogits logits(p, place, plan, reinterpret_cast<float*>(shared + layout.table));
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const auto matrix = [&](int at) { return reinterpret_cast<Bf16*>(shared + at); };
  float* const biases = reinterpret_cast<float*>(shared + layout.biases);
  const TensorBackwardHead<Shape> head{p,
                                       g,
                                       place,
                                       logits,
                                       matrix(layout.queries),
                                       matrix(layout.keys),
                                       matrix(layout.values),
                                       matrix(layout.out_gradients),
                                       matrix(layout.weights),
                                       matrix(layout.slopes),
                                       biases + warp * Layout::kBiases,
                                       logits.Drops() ? logits.dropout.kept : 1};
  const HeadChanges changes(p, place, logits);
  FillMatrix<kWidth>(HeadView<const Bf16>(p.query, place, p.width, true), changes.query, place,
                     plan, logits.rows, head.queries);
  FillMatrix<kWidth>(HeadView<const Bf16>(p.key, place, p.width, true), changes.key, place, plan,
                     logits.keys, head.keys);
  FillMatrix<kValueWidth>(HeadView<const Bf16>(p.value, place, p.value_width, true), changes.value,
                          place, plan, logits.keys, head.values);
  FillMatrix<kValueWidth>(HeadView<const Bf16>(g.out, place, p.value_width, true), changes.none,
                          place, plan, logits.rows, head.out_gradients);
  __syncthreads();
  const int first = warp * kTensorRows;
  if (first < logits.rows) TensorBackwardQueries(head, changes.query, first);
  __syncthreads();
  if (first < logits.keys) TensorBackwardKeys(head, changes, first);
  if (g.diagonal != nullptr) SumDiagonals(head);
  __syncthreads();
  const auto tiles = [](int rows) { return WholeTiles(rows) / kTensorRows; };
  StoreBiasSums<Shape>(p, g, place, biases, tiles(logits.rows), tiles(logits.keys));
}

}  // namespace pelab::trainer
