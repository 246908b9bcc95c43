// Attention forward with ordinary arithmetic (multiply-add). One thread or a few lanes process each
// query row and keep the row and its output in registers. Keys and values go through shared memory,
// where all lanes read them at once. The softmax is computed online (Milakov and Gimelshein 2018),
// in steps of a few keys.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention_logits.cuh"
#include "worker/trainer/kernels/attention/attention_rows.cuh"

namespace pelab::trainer {

inline constexpr int kAttentionStep = 8;  // tiles are multiples of this

// How rows of kWidth and kValueWidth channels (multiples of 4) are distributed over lanes. Lane
// `part` of a row's kLanes holds the groups of four channels (quads) part, part + kLanes, …
template <int kWidth_, int kValueWidth_>
struct AttentionShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kValueWidth = kValueWidth_;
  static constexpr int kLanes = kWidth + kValueWidth <= 48 ? 1 : kWidth == 32 ? 2 : 4;
  static constexpr int kQuads = kWidth / 4 / kLanes;            // of queries and keys, per lane
  static constexpr int kValueQuads = kValueWidth / 4 / kLanes;  // of values, per lane
  static constexpr int kForwardRows = kWidth <= 16 ? 2 : 1;     // query rows per thread
};

template <class Shape>
struct ForwardRow {
  float4 query[Shape::kQuads];
  float4 out[Shape::kValueQuads];
  float most = kNoLogit;  // the largest logit so far
  float sum = 0;          // sum of 2^(logit - most) over this row
  int limit = 0;

  __device__ __forceinline__ ForwardRow() {
#pragma unroll
    for (int c = 0; c < Shape::kValueQuads; ++c) out[c] = Zero4();
  }

  // Adds kAttentionStep logits to the softmax and replaces them by their weights relative to
  // `most`.
  __device__ __forceinline__ void Absorb(float (&logits)[kAttentionStep]) {
    float largest = logits[0];
#pragma unroll
    for (int k = 1; k < kAttentionStep; ++k) largest = fmaxf(largest, logits[k]);
    if (largest > most) {
      const float factor = Exp2(most - largest);
      sum *= factor;
#pragma unroll
      for (int c = 0; c < Shape::kValueQuads; ++c) out[c] = Scaled4(out[c], factor);
      most = largest;
    }
    const float base = most == kNoLogit ? 0 : most;
#pragma unroll
    for (int k = 0; k < kAttentionStep; ++k) {
      logits[k] = Exp2(logits[k] - base);
      sum += logits[k];
    }
  }
};

__device__ __forceinline__ void Hide(int key, int limit, float (&logits)[kAttentionStep]) {
  if (key + kAttentionStep <= limit) return;
#pragma unroll
  for (int k = 0; k < kAttentionStep; ++k) {
    if (key + k >= limit) logits[k] = kNoLogit;
  }
}

// One step of a thread's rows over the keys from `key` on. All lanes must call it.
template <class Shape>
__device__ __forceinline__ void ForwardStep(const HeadLogits& logits, int first_row, int key,
                                            const float* keys, const float* values, int part,
                                            ForwardRow<Shape> (&rows)[Shape::kForwardRows]) {
  constexpr int kRows = Shape::kForwardRows;
  float weights[kRows][kAttentionStep];
#pragma unroll
  for (int k = 0; k < kAttentionStep; ++k) {
    float sums[kRows] = {};
#pragma unroll
    for (int c = 0; c < Shape::kQuads; ++c) {
      const float4 x = Load4(keys + k * Shape::kWidth + 4 * (c * Shape::kLanes + part));
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[r] = Dot4(rows[r].query[c], x, sums[r]);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) weights[r][k] = LanesSum<Shape::kLanes>(sums[r]);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    logits.AddTerms<kAttentionStep, false>(first_row + r, key, weights[r]);
    Hide(key, rows[r].limit, weights[r]);
    rows[r].Absorb(weights[r]);
    if (logits.Drops()) {
#pragma unroll
      for (int k = 0; k < kAttentionStep; ++k) {
        weights[r][k] *= logits.Factor(first_row + r, key + k);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < kAttentionStep; ++k) {
#pragma unroll
    for (int c = 0; c < Shape::kValueQuads; ++c) {
      const float4 x = Load4(values + k * Shape::kValueWidth + 4 * (c * Shape::kLanes + part));
#pragma unroll
      for (int r = 0; r < kRows; ++r) Add4(&rows[r].out[c], weights[r][k], x);
    }
  }
}

// The dynamic shared memory of a block, in floats.
template <class Shape, class Element>
std::int64_t ForwardSharedFloats(const FusedAttention<Element>& p, const AttentionPlan& plan) {
  const std::int64_t table = p.diagonal == nullptr ? 0 : 2 * p.keys - 1;
  return plan.heads * (plan.tile * (Shape::kWidth + Shape::kValueWidth) + table);
}

template <class Element, int kWidth, int kValueWidth>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionForwardKernel(PELAB_GRID_CONSTANT FusedAttention<Element> p,
                           PELAB_GRID_CONSTANT AttentionPlan plan) {
  using Shape = AttentionShape<kWidth, kValueWidth>;
  constexpr int kRows = Shape::kForwardRows;
  PELAB_DYNAMIC_SHARED(float, shared);
  const HeadPlace place(plan, p);
  const int tile_floats = plan.tile * (kWidth + kValueWidth);
  float* const keys = shared + place.local * tile_floats;
  float* const values = keys + plan.tile * kWidth;
  const HeadLogits logits(
      p, place, plan,
      shared + plan.heads * tile_floats + place.local * (2 * static_cast<int>(p.keys) - 1));
  const int heads = static_cast<int>(p.heads);
  const HeadView<const Element> query(p.query, place, p.width, plan.vectors);
  const HeadView<const Element> key(p.key, place, p.width, plan.vectors);
  const HeadView<const Element> value(p.value, place, p.value_width, plan.vectors);
  const HeadView<Element> out(p.out, place, p.value_width, plan.vectors);
  const HeadView<Element> rest(p.out_rest, place, p.value_width, plan.vectors);
  const RowChange query_change(MemberBiases(p, place, p.query_bias), p.query_rotations,
                               p.rotations_by_head, place, heads, p.width, logits.first_position,
                               p.scale * kLog2E);
  const RowChange key_change(MemberBiases(p, place, p.key_bias), p.key_rotations,
                             p.rotations_by_head, place, heads, p.width, 0, 1);
  const RowChange value_change(MemberBiases(p, place, p.value_bias), nullptr, false, place, heads,
                               p.value_width, 0, 1);
  const int part = place.thread % Shape::kLanes;
  const int rows_a_pass = plan.threads / Shape::kLanes * kRows;

#pragma unroll 1
  for (int pass = 0; pass < logits.rows; pass += rows_a_pass) {
    const int first_row = pass + place.thread / Shape::kLanes * kRows;
    ForwardRow<Shape> rows[kRows];
    int limit = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      rows[r].limit = logits.Limit(first_row + r);
      limit = max(limit, rows[r].limit);
      const int row = min(first_row + r, logits.rows - 1);
#pragma unroll
      for (int c = 0; c < Shape::kQuads; ++c) {
        const int column = 4 * (c * Shape::kLanes + part);
        rows[r].query[c] = query_change.Apply(query.Load(row, column), row, column);
      }
    }
    limit = WarpMax(limit);
#pragma unroll 1
    for (int first = 0; first < logits.keys; first += plan.tile) {
      if (pass == 0 || plan.tile < logits.keys) {
        __syncthreads();
        FillTile<kWidth>(key, key_change, place, plan, first, logits.keys, keys);
        FillTile<kValueWidth>(value, value_change, place, plan, first, logits.keys, values);
        __syncthreads();
      }
      const int count = min(plan.tile, limit - first);
#pragma unroll 1
      for (int k = 0; k < count; k += kAttentionStep) {
        ForwardStep<Shape>(logits, first_row, first + k, keys + k * kWidth,
                           values + k * kValueWidth, part, rows);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = first_row + r;
      if (row >= logits.rows || !place.exists) continue;
      const float inverse = 1 / rows[r].sum;
#pragma unroll
      for (int c = 0; c < Shape::kValueQuads; ++c) {
        const int column = 4 * (c * Shape::kLanes + part);
        const float4 exact = Scaled4(rows[r].out[c], inverse);
        out.Store(row, column, exact);
        if (rest.rows != nullptr) rest.Store(row, column, Less4(exact, out.Load(row, column)));
      }
      if (p.log_sum_exp != nullptr && part == 0) {
        p.log_sum_exp[place.index * p.rows + row] = (rows[r].most + Log2(rows[r].sum)) * kLn2;
      }
    }
  }
}

}  // namespace pelab::trainer
