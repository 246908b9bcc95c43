// Building blocks of attention on a CPU: products of small matrices in registers, and packing of a
// head's rows into whole vectors with bias, rotation and scale. Only attention_cpu.cc includes this
// file.
#pragma once

#include <algorithm>
#include <cstdint>

#include "worker/trainer/kernels/attention/attention.h"
#include "worker/trainer/kernels/vectors.h"

namespace pelab::trainer {

// C (m, 16 n) = A (m, k) B (k, 16 n) for `kRows` rows and `kCols` vectors of columns, with all sums
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
    for (int j = 0; j < kCols; ++j) right[j] = Load<Floats>(b + p * b_row + j * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const float left = a[i * a_row + p * a_col];
      for (int j = 0; j < kCols; ++j) sum[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kCols; ++j) Store(sum[i][j], c + i * c_row + j * kLanes);
  }
}

// The needed part of a tile of rows of a product: its columns and the terms of its sums.
struct Extent {
  std::int64_t columns = 0;
  std::int64_t first_term = 0;
  std::int64_t terms_end = 0;
};

// C (m, n) = A (m, k) B (k, n), n a multiple of 16. Element (i, p) of A is a[i a_row + p a_col].
// `extent_of(i, rows)` returns the needed part for rows i … i + rows - 1; the rest of C does not
// change.
template <class Floats, class ExtentOf>
PELAB_INLINE void Product(std::int64_t m, std::int64_t n, const float* a, std::int64_t a_row,
                          std::int64_t a_col, const float* b, std::int64_t b_row, float* c,
                          std::int64_t c_row, const ExtentOf& extent_of) {
  for (std::int64_t j = 0; j < n;) {
    // The sums of four rows and two vectors fit into the registers only if these are wide.
    const bool two = !kHasHalves<Floats> && n - j >= 2 * kLanes;
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
    j += two ? 2 * kLanes : kLanes;
  }
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

// The first `count` channels at `from`, followed by zeros.
template <class Floats>
PELAB_INLINE Floats LoadChannels(const float* from, std::int64_t count) {
  if (count >= kLanes) return Load<Floats>(from);
  float channels[kLanes] = {};
  for (std::int64_t i = 0; i < count; ++i) channels[i] = from[i];
  return Load<Floats>(channels);
}

template <class Floats>
PELAB_INLINE void StoreChannels(const Floats& x, std::int64_t count, float* to) {
  if (count >= kLanes) return Store(x, to);
  float channels[kLanes];
  Store(x, channels);
  for (std::int64_t i = 0; i < count; ++i) to[i] = channels[i];
}

template <class Element>
PELAB_INLINE Element* HeadOf(const HeadRows<Element>& view, std::int64_t batch, std::int64_t head) {
  return view.data + batch * view.batch_stride + head * view.head_stride;
}

// Copies the rows of one head with bias (the part of this head), rotation and scale. Each row is
// padded with zeros.
template <class Floats>
PELAB_INLINE void Pack(const float* from, std::int64_t row_stride, std::int64_t rows,
                       std::int64_t width, const float* bias, const Rotations& rotations,
                       float scale, float* to, std::int64_t to_stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < width; c += kLanes) {
      const std::int64_t count = width - c;
      Floats x = LoadChannels<Floats>(from + i * row_stride + c, count);
      if (bias != nullptr) x += LoadChannels<Floats>(bias + c, count);
      if (rotations.data != nullptr) {
        x = TurnVector(
            x, LoadChannels<Floats>(rotations.data + i * rotations.row_stride + c, count), false);
      }
      Store(x * scale, to + i * to_stride + c);
    }
  }
}

// Applies scale and inverse rotation to the rows of a gradient and stores them. `bias_sum`, if not
// null, gets the sum of the rows, which is the gradient of the bias.
template <class Floats>
PELAB_INLINE void Unpack(const float* from, std::int64_t from_stride, std::int64_t rows,
                         std::int64_t width, const Rotations& rotations, float scale,
                         float* bias_sum, float* to, std::int64_t row_stride) {
  for (std::int64_t c = 0; c < width; c += kLanes) {
    const std::int64_t count = width - c;
    Floats sum = {};
    for (std::int64_t i = 0; i < rows; ++i) {
      Floats x = Load<Floats>(from + i * from_stride + c) * scale;
      if (rotations.data != nullptr) {
        x = TurnVector(
            x, LoadChannels<Floats>(rotations.data + i * rotations.row_stride + c, count), true);
      }
      sum += x;
      StoreChannels(x, count, to + i * row_stride + c);
    }
    if (bias_sum != nullptr) StoreChannels(sum, count, bias_sum + c);
  }
}

// The two halves of x and y interleaved, like a perfect shuffle of cards.
template <class Floats>
struct Dealt {
  Floats low, high;
};
template <class Floats>
PELAB_INLINE Dealt<Floats> Deal(const Floats& x, const Floats& y) {
  if constexpr (kHasHalves<Floats>) {
    const auto low = Deal(x.low, y.low), high = Deal(x.high, y.high);
    return {{low.low, low.high}, {high.low, high.high}};
  } else {
    constexpr int kCount = sizeof(Floats) / sizeof(float);
    return {Shuffled(x, y, [](int i) PELAB_INLINE_LAMBDA { return i / 2 + i % 2 * kCount; }),
            Shuffled(x, y, [](int i) PELAB_INLINE_LAMBDA {
              return kCount / 2 + i / 2 + i % 2 * kCount;
            })};
  }
}

// to (n, m) = from^T (m, n), where m and n are multiples of 16. Works on blocks of 16 by 16. Four
// rounds interleave the first and the second half of the rows.
template <class Floats>
PELAB_INLINE void Transpose(const float* from, std::int64_t m, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < m; i += kLanes) {
    for (std::int64_t j = 0; j < n; j += kLanes) {
      Floats rows[kLanes], dealt[kLanes];
      for (std::int64_t r = 0; r < kLanes; ++r) rows[r] = Load<Floats>(from + (i + r) * n + j);
      for (int round = 0; round < 4; ++round) {
        for (std::int64_t r = 0; r < kLanes / 2; ++r) {
          const Dealt<Floats> two = Deal(rows[r], rows[r + kLanes / 2]);
          dealt[2 * r] = two.low;
          dealt[2 * r + 1] = two.high;
        }
        for (std::int64_t r = 0; r < kLanes; ++r) rows[r] = dealt[r];
      }
      for (int r = 0; r < kLanes; ++r) Store(rows[r], to + (j + r) * m + i);
    }
  }
}

}  // namespace pelab::trainer
