// How the attention kernels load a head's rows (with bias, rotation, scale and padding) and store
// their gradients.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention.h"
#include "worker/trainer/kernels/intrinsics.cuh"

namespace pelab::trainer {

inline constexpr int kAttentionThreads = 128;  // per block
inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kLn2 = 0.693147180559945309f;

// How the threads of a block share its heads and how much of a head they hold. Made on the host.
struct AttentionPlan {
  int threads = 0;       // per head; a power of two
  int heads = 0;         // per block: kAttentionThreads / threads
  int tile = 0;          // rows of a head in shared memory at a time; a multiple of kAttentionStep
  bool vectors = false;  // row starts and row widths are multiples of four elements
};

// The head on which a thread works.
struct HeadPlace {
  int local;   // index among the heads of the block
  int thread;  // index among the threads of the head
  // False in the last block for heads beyond the last; these threads compute another head in vain.
  bool exists;
  std::int64_t index;      // b H + h
  std::int64_t batch;      // b
  int head;                // h
  unsigned member;         // m
  std::int64_t in_member;  // the index among the member's heads

  template <class Element>
  __device__ __forceinline__ HeadPlace(const AttentionPlan& plan, const FusedAttention<Element>& p)
      : local(static_cast<int>(threadIdx.x) / plan.threads),
        thread(static_cast<int>(threadIdx.x) % plan.threads) {
    // 32-bit divisions cost a fifth of 64-bit ones, and there are fewer than 2^31 heads.
    unsigned at = blockIdx.x * static_cast<unsigned>(plan.heads) + static_cast<unsigned>(local);
    const unsigned all = static_cast<unsigned>(p.batch) * static_cast<unsigned>(p.heads);
    exists = at < all;
    if (!exists) at = 0;
    index = at;
    batch = at / static_cast<unsigned>(p.heads);
    head = static_cast<int>(at % static_cast<unsigned>(p.heads));
    const unsigned a_member = all / static_cast<unsigned>(p.members.count);
    member = at / a_member;
    in_member = at % a_member;
  }
};

__device__ __forceinline__ float4 Zero4() { return make_float4(0, 0, 0, 0); }
__device__ __forceinline__ float Dot4(float4 a, float4 b, float sum) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}
__device__ __forceinline__ void Add4(float4* to, float factor, float4 x) {
  to->x = fmaf(factor, x.x, to->x);
  to->y = fmaf(factor, x.y, to->y);
  to->z = fmaf(factor, x.z, to->z);
  to->w = fmaf(factor, x.w, to->w);
}
__device__ __forceinline__ float4 Less4(float4 x, float4 y) {
  return make_float4(x.x - y.x, x.y - y.y, x.z - y.z, x.w - y.w);
}
__device__ __forceinline__ float4 Scaled4(float4 x, float factor) {
  return make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
}

// Multiplies two complex numbers by those of `rotations`, or (TurnedBack4) by their conjugates.
__device__ __forceinline__ float4 Turned4(float4 x, float4 rotations) {
  return make_float4(x.x * rotations.x - x.y * rotations.y, x.x * rotations.y + x.y * rotations.x,
                     x.z * rotations.z - x.w * rotations.w, x.z * rotations.w + x.w * rotations.z);
}
__device__ __forceinline__ float4 TurnedBack4(float4 x, float4 rotations) {
  return make_float4(x.x * rotations.x + x.y * rotations.y, x.y * rotations.x - x.x * rotations.y,
                     x.z * rotations.z + x.w * rotations.w, x.w * rotations.z - x.z * rotations.w);
}

// Four elements from `column` on; those from `width` on are zeros.
template <class Element>
__device__ __forceinline__ float4 LoadRow4(const Element* row, int column, int width,
                                           bool vectors) {
  if (column >= width) return Zero4();
  if (vectors) return Load4(row + column);
  float4 x = Zero4();
  x.x = ToFloat(row[column]);
  if (column + 1 < width) x.y = ToFloat(row[column + 1]);
  if (column + 2 < width) x.z = ToFloat(row[column + 2]);
  if (column + 3 < width) x.w = ToFloat(row[column + 3]);
  return x;
}
template <class Element>
__device__ __forceinline__ void StoreRow4(Element* row, int column, int width, bool vectors,
                                          float4 x) {
  if (column >= width) return;
  if (vectors) {
    Store4(row + column, x);
    return;
  }
  SetElement(row + column, x.x);
  if (column + 1 < width) SetElement(row + column + 1, x.y);
  if (column + 2 < width) SetElement(row + column + 2, x.z);
  if (column + 3 < width) SetElement(row + column + 3, x.w);
}

// One head's rows of queries, keys or values; null rows if there are none. Element may be const.
template <class Element>
struct HeadView {
  Element* rows;
  int stride;
  int width;
  bool vectors;

  __device__ __forceinline__ HeadView(const HeadRows<Element>& all, const HeadPlace& place,
                                      std::int64_t columns, bool in_vectors)
      : rows(all.data == nullptr
                 ? nullptr
                 : all.data + place.batch * all.batch_stride + place.head * all.head_stride),
        stride(static_cast<int>(all.row_stride)),
        width(static_cast<int>(columns)),
        vectors(in_vectors) {}

  __device__ __forceinline__ Element* Row(int row) const {
    return rows + static_cast<std::int64_t>(row) * stride;
  }
  __device__ __forceinline__ float4 Load(int row, int column) const {
    return LoadRow4(Row(row), column, width, vectors);
  }
  __device__ __forceinline__ void Store(int row, int column, float4 x) const {
    StoreRow4(Row(row), column, width, vectors, x);
  }
};

// The biases of a member; null: none.
template <class Element>
__device__ __forceinline__ const float* MemberBiases(const FusedAttention<Element>& p,
                                                     const HeadPlace& place, const float* biases) {
  return biases == nullptr ? nullptr : biases + place.member * p.members.parameter_stride;
}

// The change that is applied to every loaded row of a head before it enters a product.
struct RowChange {
  const float* bias;       // (w); null: none
  const float* rotations;  // by position, with a stride of `turn_stride` floats; null: none
  int turn_stride;
  int first_position;  // of row 0
  int width;
  float scale;

  __device__ __forceinline__ RowChange(const float* all_biases, const float* all_rotations,
                                       bool rotations_by_head, const HeadPlace& place, int heads,
                                       std::int64_t columns, int first, float by)
      : bias(all_biases == nullptr ? nullptr : all_biases + place.head * columns),
        rotations(all_rotations),
        turn_stride(static_cast<int>(rotations_by_head ? heads * columns : columns)),
        first_position(first),
        width(static_cast<int>(columns)),
        scale(by) {
    if (rotations != nullptr && rotations_by_head) rotations += place.head * columns;
  }

  __device__ __forceinline__ const float* RotationsOf(int row) const {
    return rotations + static_cast<std::int64_t>(first_position + row) * turn_stride;
  }
  __device__ __forceinline__ float4 Rotations(int row, int column) const {
    return LoadRow4(RotationsOf(row), column, width, false);
  }
  __device__ __forceinline__ float4 Apply(float4 x, int row, int column) const {
    if (bias != nullptr) Add4(&x, 1, LoadRow4(bias, column, width, false));
    if (rotations != nullptr) x = Turned4(x, Rotations(row, column));
    return Scaled4(x, scale);
  }
  // Converts the gradient of the changed row to that of the loaded row. The caller applies the
  // scale.
  __device__ __forceinline__ float4 Undo(float4 gradient, int row, int column) const {
    if (rotations != nullptr) gradient = TurnedBack4(gradient, Rotations(row, column));
    return gradient;
  }
};

// The head's part of the partial sums of a bias; null if they are not needed.
template <class Element>
__device__ __forceinline__ float* BiasSums(const FusedAttention<Element>& p,
                                           const FusedAttentionGradients<Element>& g,
                                           const HeadPlace& place, float* all, int columns) {
  if (all == nullptr) return nullptr;
  const std::int64_t stride = g.bias_batch_stride == 0 ? p.heads * columns : g.bias_batch_stride;
  return all + place.batch * stride + place.head * columns;
}

// Copies rows [first, first + tile) of a head as floats, kColumns per row; rows from `end` on
// become zeros.
template <int kColumns, class Element>
__device__ __forceinline__ void FillTile(const HeadView<Element>& from, const RowChange& change,
                                         const HeadPlace& place, const AttentionPlan& plan,
                                         int first, int end, float* to) {
  constexpr int kQuads = kColumns / 4;
#pragma unroll 1
  for (int i = place.thread; i < plan.tile * kQuads; i += plan.threads) {
    const int row = first + i / kQuads, column = i % kQuads * 4;
    float4 x = Zero4();
    if (row < end) x = change.Apply(from.Load(row, column), row, column);
    Store4(to + 4 * i, x);
  }
}

}  // namespace pelab::trainer
