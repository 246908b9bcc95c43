// For the attention kernels: the terms that are added to logits, which logits are visible, and
// which weights are dropped.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention.h"
#include "worker/trainer/kernels/attention/attention_rows.cuh"

namespace pelab::trainer {

inline constexpr float kNoLogit = -INFINITY;

// One head's part of the problem. Logits are in units of log 2, that is, multiplied by log2(e).
struct HeadLogits {
  int rows;            // T'
  int keys;            // T
  int first_position;  // position of query row 0: T - T'
  int length;          // keys from this one on are hidden
  bool causal;
  // In shared memory, times log2(e); points to the entry for j - i = 0; null: none.
  const float* diagonal;
  bool sloped;
  float slope;        // times log2(e)
  const float* term;  // null: none
  int term_row_stride;
  int term_key_stride;
  DropoutStream dropout;
  // Dropout indices count the member's logits (B/M, H, T', T), including the skipped positions.
  std::uint32_t logits_a_row;
  std::uint32_t first_logit;  // index of the head's first logit

  // `table`: 2T - 1 floats of shared memory for the head. The constructor fills them; a barrier
  // must follow.
  template <class Element>
  __device__ __forceinline__ HeadLogits(const FusedAttention<Element>& p, const HeadPlace& place,
                                        const AttentionPlan& plan, float* table)
      : rows(static_cast<int>(p.rows)),
        keys(static_cast<int>(p.keys)),
        first_position(static_cast<int>(p.keys - p.rows)),
        length(keys),
        causal(p.causal),
        diagonal(nullptr),
        sloped(p.slopes != nullptr),
        slope(sloped ? p.slopes[place.head] * kLog2E : 0),
        term(p.term.data),
        term_row_stride(static_cast<int>(p.term.row_stride)),
        term_key_stride(static_cast<int>(p.term.key_stride)),
        dropout(WithKeys(MemberOf(p.dropout, place.member))),
        logits_a_row(static_cast<std::uint32_t>(p.keys + p.dropout.skipped)),
        first_logit(static_cast<std::uint32_t>(place.in_member * (p.rows + p.dropout.skipped)) *
                    logits_a_row) {
    if (p.lengths != nullptr && p.lengths[place.batch] < keys) {
      length = static_cast<int>(p.lengths[place.batch]);
    }
    if (!place.exists) length = 0;
    if (term != nullptr) {
      term += place.batch * p.term.batch_stride + place.head * p.term.head_stride;
    }
    if (p.diagonal == nullptr) return;
    const std::int64_t heads = p.diagonal_by_head ? p.heads : 1;
    const std::int64_t row =
        (p.diagonal_by_member ? place.member * heads : 0) + (p.diagonal_by_head ? place.head : 0);
    const float* const from = p.diagonal + row * (2 * p.keys - 1);
#pragma unroll 1
    for (int i = place.thread; i < 2 * keys - 1; i += plan.threads) table[i] = from[i] * kLog2E;
    diagonal = table + keys - 1;
  }

  // Query row `row` sees only keys below this limit. 0 if the row does not exist.
  __device__ __forceinline__ int Limit(int row) const {
    if (row >= rows) return 0;
    return causal ? min(length, first_position + row + 1) : length;
  }

  // Adds the terms to kCount logits that start at (row, key) and advance by one row or one key.
  template <int kCount, bool kAlongRows>
  __device__ __forceinline__ void AddTerms(int row, int key, float (&logits)[kCount]) const {
    const auto row_at = [&](int k) { return min(kAlongRows ? row + k : row, rows - 1); };
    const auto key_at = [&](int k) { return min(kAlongRows ? key : key + k, keys - 1); };
    const auto distance = [&](int k) { return key_at(k) - row_at(k) - first_position; };
    if (diagonal != nullptr) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) logits[k] += diagonal[distance(k)];
    }
    if (sloped) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) logits[k] -= slope * static_cast<float>(abs(distance(k)));
    }
    if (term != nullptr) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        logits[k] += kLog2E * term[row_at(k) * term_row_stride + key_at(k) * term_key_stride];
      }
    }
  }

  __device__ __forceinline__ bool Drops() const { return dropout.threshold != 0; }
  __device__ __forceinline__ float Factor(int row, int key) const {
    return DropoutFactor(dropout, Index(row, key));
  }
  // Whether the dropout factor is not 0. Does not compute the factor.
  __device__ __forceinline__ bool Keeps(int row, int key) const {
    DropoutStream stream = dropout;
    stream.kept = 1;
    return DropoutFactor(stream, Index(row, key)) != 0;
  }
  __device__ __forceinline__ std::uint32_t Index(int row, int key) const {
    return first_logit + static_cast<std::uint32_t>(row) * logits_a_row +
           static_cast<std::uint32_t>(key);
  }
};

// The maximum over all lanes of the warp.
__device__ __forceinline__ int WarpMax(int x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = max(x, __shfl_xor_sync(0xffffffffU, x, lanes));
  return x;
}
__device__ __forceinline__ int WarpMin(int x) { return -WarpMax(-x); }

// The sum over groups of kLanes neighboring lanes.
template <int kLanes>
__device__ __forceinline__ float LanesSum(float x) {
#pragma unroll
  for (int lanes = 1; lanes < kLanes; lanes *= 2) x += __shfl_xor_sync(0xffffffffU, x, lanes);
  return x;
}

}  // namespace pelab::trainer
