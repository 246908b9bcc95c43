// Building blocks of attention on a CPU: products of small matrices in registers, and packing of a
// head's rows into whole vectors with bias, rotation and scale. Only attention_cpu.cc includes this
// file.
#pragma once

#include <algorithm>
#include <cstdint>

#include "worker/trainer/kernels/attention/attention.h"
#include "worker/trainer/kernels/vectors.h"

namespace pelab::trainer {

// C (m, n) = A (m, k) B (k, n) for `kRows` rows and the columns of `kCols` vectors, with all sums
// in registers.
template <class Floats, int kRows, int kCols>
PELAB_INLINE void Tile(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_col,
                       const float* b, std::int64_t b_row, float* c, std::int64_t c_row) {
  Floats sum[kRows][kCols];
  for (int i = 0; i < kRows; ++i) {  // one by one: the compiler would clear an array in memory
    for (int j = 0; j < kCols; ++j) sum[i][j] = Floats{};
  }
  for (std::int64_t p = 0; p < k; ++p) {
    Floats right[kCols];
    for (int j = 0; j < kCols; ++j) right[j] = Load<Floats>(b + p * b_row + j * kLanesOf<Floats>);
    for (int i = 0; i < kRows; ++i) {
      const float left = a[i * a_row + p * a_col];
      for (int j = 0; j < kCols; ++j) sum[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kCols; ++j) Store(sum[i][j], c + i * c_row + j * kLanesOf<Floats>);
  }
}

// The needed part of a tile of rows of a product: its columns and the terms of its sums.
struct Extent {
  std::int64_t columns = 0;
  std::int64_t first_term = 0;
  std::int64_t terms_end = 0;
};

// C (m, n) = A (m, k) B (k, n), where n is a multiple of the lanes of Floats. Element (i, p) of A
// is a[i a_row + p a_col]. `extent_of(i, rows)` returns the needed part of `rows` rows from i on;
// the rest of C does not change.
template <class Floats, class ExtentOf>
PELAB_INLINE void Product(std::int64_t m, std::int64_t n, const float* a, std::int64_t a_row,
                          std::int64_t a_col, const float* b, std::int64_t b_row, float* c,
                          std::int64_t c_row, const ExtentOf& extent_of) {
  for (std::int64_t j = 0; j < n;) {
    // The sums of four rows and two vectors fit into the registers only if these are wide.
    const bool two = !kHasHalves<Floats> && n - j >= 2 * kLanesOf<Floats>;
    for (std::int64_t i = 0; i < m;) {
      const std::int64_t rows = m - i >= 4 ? 4 : 1;
      const Extent extent = extent_of(i, rows);
      if (j < extent.columns) {
        const std::int64_t first = extent.first_term, k = extent.terms_end - first;
        const float* const left = a + i * a_row + first * a_col;
        const float* const right = b + first * b_row + j;
        float* const to = c + i * c_row + j;
        if (rows == 4 && two) {
          Tile<Floats, 4, 2>(k, left, a_row, a_col, right, b_row, to, c_row);
        } else if (rows == 4) {
          Tile<Floats, 4, 1>(k, left, a_row, a_col, right, b_row, to, c_row);
        } else if (two) {
          Tile<Floats, 1, 2>(k, left, a_row, a_col, right, b_row, to, c_row);
        } else {
          Tile<Floats, 1, 1>(k, left, a_row, a_col, right, b_row, to, c_row);
        }
      }
      i += rows;
    }
    j += (two ? 2 : 1) * kLanesOf<Floats>;
  }
}

// The vector of half the lanes.
template <class Vector>
struct HalfOf {
  using Type = Register<float, kLanesOf<Vector> / 2>;
};
template <class Half>
struct HalfOf<Halves<Half>> {
  using Type = Half;
};

// Calls body.operator()<Vector>(n) with the vector in which `width` channels take the fewest
// operations; n is `width`, rounded up to whole vectors. A channel's lane computes the same with
// each of them.
template <class Floats, class Body>
PELAB_INLINE void ForChannels(std::int64_t width, const Body& body) {
  constexpr std::int64_t kCount = kLanesOf<Floats>;
  if constexpr (kCount > 4) {
    using Half = typename HalfOf<Floats>::Type;
    const bool fewer = kHasHalves<Floats> ? PaddedTo<Half>(width) < PaddedTo<Floats>(width)
                                          : width <= kLanesOf<Half>;
    if (fewer) return ForChannels<Half>(width, body);
  }
  body.template operator()<Floats>(PaddedTo<Floats>(width));
}

// Multiplies adjacent pairs by complex numbers or by their conjugates.
template <class Floats>
PELAB_INLINE Floats TurnVector(const Floats& x, const Floats& rotations, bool conjugate) {
  if constexpr (kHasHalves<Floats>) {
    return {TurnVector(x.low, rotations.low, conjugate),
            TurnVector(x.high, rotations.high, conjugate)};
  } else {
    constexpr float kSigns[kLanes] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
    const Floats reals =
        Shuffled(rotations, rotations, [](int i) PELAB_INLINE_LAMBDA { return i & ~1; });
    const Floats imaginaries =
        Shuffled(rotations, rotations, [](int i) PELAB_INLINE_LAMBDA { return i | 1; });
    const Floats across = Exchanged<1>(x) * imaginaries * Load<Floats>(kSigns);
    const Floats along = x * reals;
    return conjugate ? along - across : along + across;
  }
}

// The rotations (complex numbers) for the rows of one head; null: none.
struct Rotations {
  const float* data = nullptr;  // of the first row
  std::int64_t row_stride = 0;
};

PELAB_INLINE Rotations RotationsOf(const FusedAttention<float>& p, const float* table,
                                   std::int64_t head, std::int64_t first_position) {
  if (table == nullptr) return {};
  const std::int64_t stride = (p.rotations_by_head ? p.heads : 1) * p.width;
  return {table + first_position * stride + (p.rotations_by_head ? head * p.width : 0), stride};
}

// The first `count` channels at `from`, followed by zeros. No channel takes a detour through
// memory: a vector that is loaded right after its elements were stored one by one waits for them.
template <class Floats>
PELAB_INLINE Floats LoadChannels(const float* from, std::int64_t count) {
  constexpr std::int64_t kCount = kLanesOf<Floats>;
  if (count >= kCount) return Load<Floats>(from);
  if constexpr (kHasHalves<Floats>) {
    using Half = typename HalfOf<Floats>::Type;
    return {LoadChannels<Half>(from, count),
            LoadChannels<Half>(from + kCount / 2, count - kCount / 2)};
  } else if constexpr (kCount == 4) {
    Floats x = {};
    if (count > 0) x[0] = from[0];
    if (count > 1) x[1] = from[1];
    if (count > 2) x[2] = from[2];
    return x;
  } else {
    using Half = typename HalfOf<Floats>::Type;
    return SideBySide(LoadChannels<Half>(from, count),
                      LoadChannels<Half>(from + kCount / 2, count - kCount / 2));
  }
}

template <class Floats>
PELAB_INLINE void StoreChannels(const Floats& x, std::int64_t count, float* to) {
  constexpr std::int64_t kCount = kLanesOf<Floats>;
  if (count >= kCount) return Store(x, to);
  if constexpr (kHasHalves<Floats>) {
    StoreChannels(x.low, count, to);
    StoreChannels(x.high, count - kCount / 2, to + kCount / 2);
  } else if constexpr (kCount == 4) {
    if (count > 0) to[0] = x[0];
    if (count > 1) to[1] = x[1];
    if (count > 2) to[2] = x[2];
  } else {
    StoreChannels(LowerHalf(x), count, to);
    StoreChannels(UpperHalf(x), count - kCount / 2, to + kCount / 2);
  }
}

template <class Element>
PELAB_INLINE Element* HeadOf(const HeadRows<Element>& view, std::int64_t batch, std::int64_t head) {
  return view.data + batch * view.batch_stride + head * view.head_stride;
}

// Copies the rows of one head with bias (the part of this head), rotation and scale. Each row is
// padded with zeros to whole vectors; the rest of `to` does not change.
template <class Floats>
PELAB_INLINE void Pack(const float* from, std::int64_t row_stride, std::int64_t rows,
                       std::int64_t width, const float* bias, const Rotations& rotations,
                       float scale, float* to, std::int64_t to_stride) {
  ForChannels<Floats>(width, [&]<class Vector>(std::int64_t n) PELAB_INLINE_LAMBDA {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t c = 0; c < n; c += kLanesOf<Vector>) {
        const std::int64_t count = width - c;
        Vector x = LoadChannels<Vector>(from + i * row_stride + c, count);
        if (bias != nullptr) x += LoadChannels<Vector>(bias + c, count);
        if (rotations.data != nullptr) {
          x = TurnVector(
              x, LoadChannels<Vector>(rotations.data + i * rotations.row_stride + c, count), false);
        }
        Store(x * scale, to + i * to_stride + c);
      }
    }
  });
}

// Applies scale and inverse rotation to the rows of a gradient and stores them. `bias_sum`, if not
// null, gets the sum of the rows, which is the gradient of the bias.
template <class Floats>
PELAB_INLINE void Unpack(const float* from, std::int64_t from_stride, std::int64_t rows,
                         std::int64_t width, const Rotations& rotations, float scale,
                         float* bias_sum, float* to, std::int64_t row_stride) {
  ForChannels<Floats>(width, [&]<class Vector>(std::int64_t n) PELAB_INLINE_LAMBDA {
    for (std::int64_t c = 0; c < n; c += kLanesOf<Vector>) {
      const std::int64_t count = width - c;
      Vector sum = {};
      for (std::int64_t i = 0; i < rows; ++i) {
        Vector x = Load<Vector>(from + i * from_stride + c) * scale;
        if (rotations.data != nullptr) {
          x = TurnVector(
              x, LoadChannels<Vector>(rotations.data + i * rotations.row_stride + c, count), true);
        }
        sum += x;
        StoreChannels(x, count, to + i * row_stride + c);
      }
      if (bias_sum != nullptr) StoreChannels(sum, count, bias_sum + c);
    }
  });
}

// The lower or the upper halves of x and y interleaved, like a perfect shuffle of cards.
template <class Vector>
PELAB_INLINE Vector DealLower(const Vector& x, const Vector& y) {
  constexpr int kCount = kLanesOf<Vector>;
  return Shuffled(x, y, [](int i) PELAB_INLINE_LAMBDA { return i / 2 + i % 2 * kCount; });
}
template <class Vector>
PELAB_INLINE Vector DealUpper(const Vector& x, const Vector& y) {
  constexpr int kCount = kLanesOf<Vector>;
  return Shuffled(x, y,
                  [](int i) PELAB_INLINE_LAMBDA { return kCount / 2 + i / 2 + i % 2 * kCount; });
}

// A square block of as many rows as a vector has lanes, register by register. Each round
// interleaves the first and the second half of the rows.
template <class Vector>
PELAB_INLINE void TransposeBlock(const float* from, std::int64_t from_stride, float* to,
                                 std::int64_t to_stride) {
  constexpr std::int64_t kCount = kLanesOf<Vector>;
  if constexpr (kHasHalves<Vector>) {
    using Half = typename HalfOf<Vector>::Type;
    for (std::int64_t i = 0; i < kCount; i += kCount / 2) {
      for (std::int64_t j = 0; j < kCount; j += kCount / 2) {
        TransposeBlock<Half>(from + i * from_stride + j, from_stride, to + j * to_stride + i,
                             to_stride);
      }
    }
  } else {
    Vector rows[kCount], dealt[kCount];
    for (std::int64_t r = 0; r < kCount; ++r) rows[r] = Load<Vector>(from + r * from_stride);
    for (std::int64_t round = 1; round < kCount; round *= 2) {
      for (std::int64_t r = 0; r < kCount / 2; ++r) {
        dealt[2 * r] = DealLower(rows[r], rows[r + kCount / 2]);
        dealt[2 * r + 1] = DealUpper(rows[r], rows[r + kCount / 2]);
      }
      for (std::int64_t r = 0; r < kCount; ++r) rows[r] = dealt[r];
    }
    for (std::int64_t r = 0; r < kCount; ++r) Store(rows[r], to + r * to_stride);
  }
}

// The first `width` rows of `to` (n, m) = from^T (m, n), where m and n are multiples of 16; the
// rows after them are changed up to a whole vector.
template <class Floats>
PELAB_INLINE void Transpose(const float* from, std::int64_t m, std::int64_t n, std::int64_t width,
                            float* to) {
  ForChannels<Floats>(width, [&]<class Vector>(std::int64_t columns) PELAB_INLINE_LAMBDA {
    for (std::int64_t i = 0; i < m; i += kLanesOf<Vector>) {
      for (std::int64_t j = 0; j < columns; j += kLanesOf<Vector>) {
        TransposeBlock<Vector>(from + i * n + j, n, to + j * m + i, m);
      }
    }
  });
}

}  // namespace pelab::trainer
