// Attention forward on tensor cores: one block per head, one warp for every 16 query rows. Logits
// and weights stay in registers from the first product to the second.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention_tensor.cuh"

namespace pelab::trainer {

// The dynamic shared memory of a block, in bytes: matrices of queries, keys and values, then the
// head's diagonal.
template <class Shape>
std::int64_t TensorForwardBytes(const FusedAttention<Bf16>& p) {
  const std::int64_t rows = WholeTiles(static_cast<int>(p.rows)),
                     keys = WholeTiles(static_cast<int>(p.keys));
  const std::int64_t elements =
      (rows + keys) * kMatrixStride<Shape::kWidth> + keys * kMatrixStride<Shape::kValueWidth>;
  return 2 * elements + (p.diagonal == nullptr ? 0 : 4 * (2 * p.keys - 1));
}

template <class Shape>
__device__ __forceinline__ void TensorForwardRows(const FusedAttention<Bf16>& p,
                                                  const HeadPlace& place, const HeadLogits& logits,
                                                  const Bf16* queries, const Bf16* keys,
                                                  const Bf16* values, int first_row) {
  constexpr int kSteps = Shape::kKeys / 16;
  const TensorRows rows(logits, first_row);
  std::uint32_t query[Shape::kWidth / 16][4];
  LoadRows<Shape::kWidth>(queries, first_row, query);

  float weights[2 * kSteps][4];
  float most[2] = {kNoLogit, kNoLogit};
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    if (16 * k >= rows.limit) continue;
    TimesRows<Shape::kWidth>(query, keys, 16 * k, weights[2 * k], weights[2 * k + 1]);
    FinishLogits(logits, rows, p.scale * kLog2E, 16 * k, weights[2 * k], weights[2 * k + 1]);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      most[e / 2] = fmaxf(most[e / 2], fmaxf(weights[2 * k][e], weights[2 * k + 1][e]));
    }
  }
  float base[2], sum[2] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    most[half] = RowMax(most[half]);
    base[half] = most[half] == kNoLogit ? 0 : most[half];
  }

  KeptWeights<Shape> kept;
  const bool keeps = p.kept != nullptr && logits.Drops();
  float out[Shape::kValueWidth / 8][4] = {};
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    if (16 * k < rows.limit) {
      float(&left)[4] = weights[2 * k];
      float(&right)[4] = weights[2 * k + 1];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        left[e] = Exp2(left[e] - base[e / 2]);
        right[e] = Exp2(right[e] - base[e / 2]);
        sum[e / 2] += left[e] + right[e];
      }
      if (logits.Drops()) {
        const std::uint32_t bits = KeptBits(logits, rows, 16 * k);
        kept.Add(k, bits);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if ((bits >> e & 1U) == 0) left[e] = 0;
          if ((bits >> (4 + e) & 1U) == 0) right[e] = 0;
        }
      }
      std::uint32_t packed[4];
      Packed(left, right, packed);
      AddWeighted<Shape::kValueWidth>(packed, values, 16 * k, out);
    }
    if (k % 4 == 3 && keeps) kept.Store(k / 4, KeptWeights<Shape>::Place(p, place, first_row));
  }

  FinishForward<Shape::kValueWidth>(p, place, logits, rows, most, sum, out);
}

template <int kWidth, int kValueWidth, int kKeys>
__global__ void __launch_bounds__(2 * kKeys)
    TensorAttentionForwardKernel(PELAB_GRID_CONSTANT FusedAttention<Bf16> p,
                                 PELAB_GRID_CONSTANT AttentionPlan plan) {
  using Shape = TensorShape<kWidth, kValueWidth, kKeys>;
  PELAB_DYNAMIC_SHARED(Bf16, shared);
  const HeadPlace place(plan, p);
  const int padded_keys = WholeTiles(static_cast<int>(p.keys));
  Bf16* const queries = shared;
  Bf16* const keys = queries + WholeTiles(static_cast<int>(p.rows)) * kMatrixStride<kWidth>;
  Bf16* const values = keys + padded_keys * kMatrixStride<kWidth>;
  const HeadLogits logits(
      p, place, plan, reinterpret_cast<float*>(values + padded_keys * kMatrixStride<kValueWidth>));
  const HeadChanges changes(p, place, logits);
  FillMatrix<kWidth>(HeadView<const Bf16>(p.query, place, p.width, true), changes.query, place,
                     plan, logits.rows, queries);
  FillMatrix<kWidth>(HeadView<const Bf16>(p.key, place, p.width, true), changes.key, place, plan,
                     logits.keys, keys);
  FillMatrix<kValueWidth>(HeadView<const Bf16>(p.value, place, p.value_width, true), changes.value,
                          place, plan, logits.keys, values);
  __syncthreads();
  const int first_row = static_cast<int>(threadIdx.x) / 32 * kTensorRows;
  if (first_row >= logits.rows) return;
  TensorForwardRows<Shape>(p, place, logits, queries, keys, values, first_row);
}

}  // namespace pelab::trainer
