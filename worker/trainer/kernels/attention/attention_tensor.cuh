// Code that forward and backward attention on tensor cores share: bfloat16 matrices in shared
// memory, their fragments, and logits in fragments. With up to kMostTensorKeys keys a warp has 16
// query rows and keeps all their logits in registers (attention_tensor_forward.cuh); with more,
// keys or queries pass through shared memory in tiles (attention_streamed_forward.cuh).
//
// In fragments (intrinsics.cuh), lane 4 g + t has rows g and g + 8 and columns 2t, 2t + 1 of every
// 8. Number e of a fragment of sums is row g + 8 (e / 2), column 2t + e % 2.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention_logits.cuh"
#include "worker/trainer/kernels/attention/attention_rows.cuh"

namespace pelab::trainer {

inline constexpr int kTensorRows = 16;  // per warp

// Widths are those of the problem. kKeys, a multiple of 16, is the largest number of keys. A block
// has one head.
template <int kWidth_, int kValueWidth_, int kKeys_>
struct TensorShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kValueWidth = kValueWidth_;
  static constexpr int kKeys = kKeys_;
  static constexpr int kWarps = kKeys / kTensorRows;
  static constexpr int kThreads = 32 * kWarps;
};

// The row stride, in elements, of a matrix in shared memory. It puts eight rows into different
// banks.
template <int kColumns>
inline constexpr int kMatrixStride = kColumns + 8;

__host__ __device__ constexpr int WholeTiles(int rows) {
  return (rows + kTensorRows - 1) / kTensorRows * kTensorRows;
}

__device__ __forceinline__ float LowHalf(std::uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float HighHalf(std::uint32_t pair) {
  return __uint_as_float(pair & 0xffff0000U);
}

// Applies the change to eight elements.
__device__ __forceinline__ uint4 ChangedEight(const RowChange& change, uint4 x, int row,
                                              int column) {
  const float4 first = change.Apply(
      make_float4(LowHalf(x.x), HighHalf(x.x), LowHalf(x.y), HighHalf(x.y)), row, column);
  const float4 second = change.Apply(
      make_float4(LowHalf(x.z), HighHalf(x.z), LowHalf(x.w), HighHalf(x.w)), row, column + 4);
  return make_uint4(PackBf16(first.x, first.y), PackBf16(first.z, first.w),
                    PackBf16(second.x, second.y), PackBf16(second.z, second.w));
}

// Copies `count` of the head's rows, from `first` on, into a matrix in shared memory. Rows from
// `rows` on do not exist and become zeros.
template <int kColumns>
__device__ __forceinline__ void FillRows(const HeadView<const Bf16>& from, const RowChange& change,
                                         const HeadPlace& place, const AttentionPlan& plan,
                                         int first, int count, int rows, Bf16* to) {
  constexpr int kChunks = kColumns / 8;
  const bool changes = change.bias != nullptr || change.rotations != nullptr;
  for (int i = place.thread; i < count * kChunks; i += plan.threads) {
    const int row = first + i / kChunks, column = i % kChunks * 8;
    uint4 x = make_uint4(0, 0, 0, 0);
    if (row < rows) {
      x = *reinterpret_cast<const uint4*>(from.Row(row) + column);
      if (changes) x = ChangedEight(change, x, row, column);
    }
    *reinterpret_cast<uint4*>(to + i / kChunks * kMatrixStride<kColumns> + column) = x;
  }
}

// Copies all rows of the head and fills the matrix with zeros up to whole tiles.
template <int kColumns>
__device__ __forceinline__ void FillMatrix(const HeadView<const Bf16>& from,
                                           const RowChange& change, const HeadPlace& place,
                                           const AttentionPlan& plan, int rows, Bf16* to) {
  FillRows<kColumns>(from, change, place, plan, 0, WholeTiles(rows), rows, to);
}

// The changes of a head's rows.
struct HeadChanges {
  RowChange query, key, value;
  RowChange none;  // of output gradients

  __device__ __forceinline__ HeadChanges(const FusedAttention<Bf16>& p, const HeadPlace& place,
                                         const HeadLogits& logits)
      : query(MemberBiases(p, place, p.query_bias), p.query_rotations, p.rotations_by_head, place,
              static_cast<int>(p.heads), p.width, logits.first_position, 1),
        key(MemberBiases(p, place, p.key_bias), p.key_rotations, p.rotations_by_head, place,
            static_cast<int>(p.heads), p.width, 0, 1),
        value(MemberBiases(p, place, p.value_bias), nullptr, false, place,
              static_cast<int>(p.heads), p.value_width, 0, 1),
        none(nullptr, nullptr, false, place, 0, p.value_width, 0, 1) {}
};

// The row and column of a (16, 16) tile, stored by rows, that this lane passes to LoadMatrix4.
// DownFirst orders the four (8, 8) matrices down first, then across. This is the order for the
// tile as A, and for the transposed tile as B if it is loaded transposed. AcrossFirst is the order
// for a tile as B if its rows are B's columns.
struct TilePlace {
  int row;
  int column;
};
__device__ __forceinline__ TilePlace DownFirst() {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return {lane % 16, lane / 16 * 8};
}
__device__ __forceinline__ TilePlace AcrossFirst() {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return {lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8};
}

// Loads A's fragments: rows [first, first + 16) of a matrix with kColumns columns.
template <int kColumns>
__device__ __forceinline__ void LoadRows(const Bf16* matrix, int first,
                                         std::uint32_t (&to)[kColumns / 16][4]) {
  const TilePlace at = DownFirst();
#pragma unroll
  for (int c = 0; c < kColumns / 16; ++c) {
    LoadMatrix4(to[c], matrix + (first + at.row) * kMatrixStride<kColumns> + 16 * c + at.column);
  }
}

// Two (16, 8) tiles of sums = rows times the transpose of rows [first, first + 16) of a matrix.
template <int kColumns>
__device__ __forceinline__ void TimesRows(const std::uint32_t (&rows)[kColumns / 16][4],
                                          const Bf16* matrix, int first, float (&left)[4],
                                          float (&right)[4]) {
  const TilePlace at = AcrossFirst();
#pragma unroll
  for (int e = 0; e < 4; ++e) left[e] = right[e] = 0;
#pragma unroll
  for (int c = 0; c < kColumns / 16; ++c) {
    std::uint32_t b[4];
    LoadMatrix4(b, matrix + (first + at.row) * kMatrixStride<kColumns> + 16 * c + at.column);
    MmaBf16(left, rows[c], {b[0], b[1]});
    MmaBf16(right, rows[c], {b[2], b[3]});
  }
}

// sums (16, kColumns) += weights (16, 16) times rows [first, first + 16) of a matrix.
template <int kColumns>
__device__ __forceinline__ void AddWeighted(const std::uint32_t (&weights)[4], const Bf16* matrix,
                                            int first, float (&sums)[kColumns / 8][4]) {
  const TilePlace at = DownFirst();
#pragma unroll
  for (int c = 0; c < kColumns / 16; ++c) {
    std::uint32_t b[4];
    LoadMatrix4Transposed(b,
                          matrix + (first + at.row) * kMatrixStride<kColumns> + 16 * c + at.column);
    MmaBf16(sums[2 * c], weights, {b[0], b[1]});
    MmaBf16(sums[2 * c + 1], weights, {b[2], b[3]});
  }
}

// Converts two tiles of sums to a fragment of A.
__device__ __forceinline__ void Packed(const float (&left)[4], const float (&right)[4],
                                       std::uint32_t (&to)[4]) {
  to[0] = PackBf16(left[0], left[1]);
  to[1] = PackBf16(left[2], left[3]);
  to[2] = PackBf16(right[0], right[1]);
  to[3] = PackBf16(right[2], right[3]);
}

// The sum (RowSum) or maximum (RowMax) over the four lanes of a row.
__device__ __forceinline__ float RowSum(float x) {
  x += __shfl_xor_sync(0xffffffffU, x, 1);
  return x + __shfl_xor_sync(0xffffffffU, x, 2);
}
__device__ __forceinline__ float RowMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 2));
}

// The query rows of a warp.
struct TensorRows {
  int first;      // the tile's first row
  int row;        // this lane's upper row; its other row is 8 below
  int column;     // this lane's first column of every 8
  int limit;      // every key that some row of the tile sees is below this
  int all_see;    // every key below this is seen by all rows of the tile
  int limits[2];  // the limits of this lane's two rows

  __device__ __forceinline__ TensorRows(const HeadLogits& logits, int first_row)
      : first(first_row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    row = first + lane / 4;
    column = lane % 4 * 2;
    limit = Limit(logits, first);
    all_see = first + kTensorRows <= logits.rows ? logits.Limit(first) : 0;
    limits[0] = logits.Limit(row);
    limits[1] = logits.Limit(row + 8);
  }
  __device__ static __forceinline__ int Limit(const HeadLogits& logits, int first_row) {
    return first_row >= logits.rows ? 0
                                    : logits.Limit(min(first_row + kTensorRows, logits.rows) - 1);
  }
};

// Converts products of a tile's rows with the 16 keys from `key` on to logits.
__device__ __forceinline__ void FinishLogits(const HeadLogits& logits, const TensorRows& rows,
                                             float scale, int key, float (&left)[4],
                                             float (&right)[4]) {
  const auto each = [&](auto change) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int at = key + rows.column + e % 2, row = rows.row + e / 2 * 8;
      left[e] = change(left[e], row, at, e / 2);
      right[e] = change(right[e], row, at + 8, e / 2);
    }
  };
  each([&](float x, int, int, int) { return x * scale; });
  if (logits.diagonal != nullptr) {
    each([&](float x, int row, int at, int) {
      row = min(row, logits.rows - 1);
      return x + logits.diagonal[min(at, logits.keys - 1) - row - logits.first_position];
    });
  }
  if (logits.sloped) {
    each([&](float x, int row, int at, int) {
      return x - logits.slope * static_cast<float>(abs(at - row - logits.first_position));
    });
  }
  if (key + 16 > rows.all_see) {
    each([&](float x, int, int at, int half) { return at < rows.limits[half] ? x : kNoLogit; });
  }
}

// Tells which of this lane's 8 logits in a tile are kept: bit 4 s + e for logit e of the right (s
// = 1) or left (s = 0) half.
__device__ __forceinline__ std::uint32_t KeptBits(const HeadLogits& logits, const TensorRows& rows,
                                                  int key) {
  std::uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int at = key + rows.column + i % 2 + i / 4 * 8, row = rows.row + i / 2 % 2 * 8;
    if (logits.Keeps(row, at)) bits |= 1U << i;
  }
  return bits;
}

// The bits of dropout of a warp's 16 query rows, a byte of KeptBits for every 16 keys. Tiles that
// no row sees have none.
template <class Shape>
struct KeptWeights {
  static constexpr int kWords = Shape::kKeys / 64;
  std::uint32_t words[kWords] = {};

  __device__ __forceinline__ void Add(int step, std::uint32_t bits) {
    words[step / 4] |= bits << (step % 4 * 8);
  }
  __device__ __forceinline__ std::uint32_t At(int step) const {
    return words[step / 4] >> (step % 4 * 8) & 0xffU;
  }
  // This lane's words in FusedAttention::kept.
  __device__ static __forceinline__ std::uint32_t* Place(const FusedAttention<Bf16>& p,
                                                         const HeadPlace& place, int first_row) {
    const std::int64_t tiles = WholeTiles(static_cast<int>(p.rows)) / kTensorRows;
    const std::int64_t tile = place.index * tiles + first_row / kTensorRows;
    return p.kept + tile * kWords * 32 + threadIdx.x % 32;
  }
  __device__ __forceinline__ void Store(int word, std::uint32_t* to) const {
    to[32 * word] = words[word];
  }
  __device__ __forceinline__ void Load(const std::uint32_t* from) {
#pragma unroll
    for (int w = 0; w < kWords; ++w) words[w] = from[32 * w];
  }
};

// Stores a warp's 16 rows of sums to the head's rows from `first` on: scaled, rotated back,
// rounded. Afterwards `sums` has the stored values before rounding, and zeros for rows that do not
// exist.
template <int kColumns>
__device__ __forceinline__ void StoreTile(const HeadView<Bf16>& to, const RowChange& change,
                                          int first, int rows, float scale,
                                          float (&sums)[kColumns / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + lane / 4 + 8 * half;
#pragma unroll
    for (int c = 0; c < kColumns / 8; ++c) {
      float &x = sums[c][2 * half], &y = sums[c][2 * half + 1];
      if (row >= rows) {
        x = y = 0;
        continue;
      }
      const int column = 8 * c + lane % 4 * 2;
      x *= scale;
      y *= scale;
      if (change.rotations != nullptr) {
        const float* const turn = change.RotationsOf(row) + column;
        const float re = turn[0], im = turn[1], before = x;
        x = x * re + y * im;
        y = y * re - before * im;
      }
      *reinterpret_cast<std::uint32_t*>(to.Row(row) + column) = PackBf16(x, y);
    }
  }
}

// After StoreTile: stores what rounding has removed from its values, if `to` has rows.
template <int kColumns>
__device__ __forceinline__ void StoreRest(const HeadView<Bf16>& to, int first, int rows,
                                          const float (&sums)[kColumns / 8][4]) {
  if (to.rows == nullptr) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + lane / 4 + 8 * half;
    if (row >= rows) continue;
#pragma unroll
    for (int c = 0; c < kColumns / 8; ++c) {
      const float x = sums[c][2 * half], y = sums[c][2 * half + 1];
      const std::uint32_t rounded = PackBf16(x, y);
      *reinterpret_cast<std::uint32_t*>(to.Row(row) + 8 * c + lane % 4 * 2) =
          PackBf16(x - LowHalf(rounded), y - HighHalf(rounded));
    }
  }
}

// Divides the sums of a warp's weighted values by those of their weights, and stores them and the
// log-sum-exp. `most` and `sum` (of this lane's columns): of the logits and weights of its rows.
template <int kValueWidth>
__device__ __forceinline__ void FinishForward(const FusedAttention<Bf16>& p, const HeadPlace& place,
                                              const HeadLogits& logits, const TensorRows& rows,
                                              const float (&most)[2], float (&sum)[2],
                                              float (&out)[kValueWidth / 8][4]) {
  const float kept = logits.Drops() ? logits.dropout.kept : 1;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sum[half] = RowSum(sum[half]);
    const int row = rows.row + 8 * half;
#pragma unroll
    for (int c = 0; c < kValueWidth / 8; ++c) {
      out[c][2 * half] /= sum[half];
      out[c][2 * half + 1] /= sum[half];
    }
    if (p.log_sum_exp != nullptr && rows.column == 0 && row < logits.rows) {
      p.log_sum_exp[place.index * p.rows + row] = (most[half] + Log2(sum[half])) * kLn2;
    }
  }
  const HeadView<Bf16> to(p.out, place, p.value_width, true);
  const RowChange none(nullptr, nullptr, false, place, 0, 0, 0, 1);
  StoreTile<kValueWidth>(to, none, rows.first, logits.rows, kept, out);
  StoreRest<kValueWidth>(HeadView<Bf16>(p.out_rest, place, p.value_width, true), rows.first,
                         logits.rows, out);
}

// sums[column] = the sum over the 16 rows of a tile; with kAdd it is added to them.
template <int kColumns, bool kAdd = false>
__device__ __forceinline__ void SumTile(const float (&tile)[kColumns / 8][4], float* sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int c = 0; c < kColumns / 8; ++c) {
    float x = tile[c][0] + tile[c][2], y = tile[c][1] + tile[c][3];
#pragma unroll
    for (int lanes = 4; lanes < 32; lanes *= 2) {
      x += __shfl_xor_sync(0xffffffffU, x, lanes);
      y += __shfl_xor_sync(0xffffffffU, y, lanes);
    }
    if (lane < 4) {
      float* const to = sums + 8 * c + 2 * lane;
      to[0] = kAdd ? to[0] + x : x;
      to[1] = kAdd ? to[1] + y : y;
    }
  }
}

// Stores a fragment in A's layout to rows [row, row + 16) and columns [column, column + 16).
template <int kStride>
__device__ __forceinline__ void StorePacked(const std::uint32_t (&packed)[4], Bf16* matrix, int row,
                                            int column) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<std::uint32_t*>(matrix + (row + i % 2 * 8) * kStride + column + i / 2 * 8) =
        packed[i];
  }
}

// to[0 … count-1] = the sums over the first `warps` warps, whose parts have a stride of kStride.
template <int kStride>
__device__ __forceinline__ void StoreWarpSums(int thread, const float* sums, int warps, int count,
                                              float* to) {
  if (to == nullptr || thread >= count) return;
  float sum = 0;
  for (int warp = 0; warp < warps; ++warp) sum += sums[warp * kStride + thread];
  to[thread] = sum;
}

// Stores dk and dv of the warp's 16 keys from `first_key` on, and their sums for the biases. Head:
// of either backward kernel.
template <class Shape, bool kAdd, class Head>
__device__ __forceinline__ void StoreKeyGradients(const Head& head, const HeadChanges& changes,
                                                  int first_key,
                                                  float (&to_key)[Shape::kWidth / 8][4],
                                                  float (&to_value)[Shape::kValueWidth / 8][4]) {
  const int keys = head.logits.keys;
  StoreTile<Shape::kWidth>(HeadView<Bf16>(head.g.key, head.place, head.p.width, true), changes.key,
                           first_key, keys, head.p.scale, to_key);
  StoreTile<Shape::kValueWidth>(HeadView<Bf16>(head.g.value, head.place, head.p.value_width, true),
                                changes.value, first_key, keys, head.kept, to_value);
  if (head.g.key_bias != nullptr) {
    SumTile<Shape::kWidth, kAdd>(to_key, head.biases + Shape::kWidth);
  }
  if (head.g.value_bias != nullptr) {
    SumTile<Shape::kValueWidth, kAdd>(to_value, head.biases + 2 * Shape::kWidth);
  }
}

// The gradients of the head's biases, from the sums of as many warps as had queries or keys.
template <class Shape>
__device__ __forceinline__ void StoreBiasSums(const FusedAttention<Bf16>& p,
                                              const FusedAttentionGradients<Bf16>& g,
                                              const HeadPlace& place, const float* sums,
                                              int query_warps, int key_warps) {
  constexpr int kStride = 2 * Shape::kWidth + Shape::kValueWidth;
  StoreWarpSums<kStride>(place.thread, sums, query_warps, Shape::kWidth,
                         BiasSums(p, g, place, g.query_bias, Shape::kWidth));
  StoreWarpSums<kStride>(place.thread, sums + Shape::kWidth, key_warps, Shape::kWidth,
                         BiasSums(p, g, place, g.key_bias, Shape::kWidth));
  StoreWarpSums<kStride>(place.thread, sums + 2 * Shape::kWidth, key_warps, Shape::kValueWidth,
                         BiasSums(p, g, place, g.value_bias, Shape::kValueWidth));
}

}  // namespace pelab::trainer
