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
template <int kRows, int kCols>
PELAB_INLINE void Tile(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_col,
                       const float* b, std::int64_t b_row, float* c, std::int64_t c_row) {
  Floats sum[kRows][kCols] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    Floats right[kCols];
    for (int j = 0; j < kCols; ++j) right[j] = Load(b + p * b_row + j * kLanes);
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
template <class ExtentOf>
PELAB_INLINE void Product(std::int64_t m, std::int64_t n, const float* a, std::int64_t a_row,
                          std::int64_t a_col, const float* b, std::int64_t b_row, float* c,
                          std::int64_t c_row, const ExtentOf& extent_of) {
  for (std::int64_t j = 0; j < n;) {
    const bool two = n - j >= 2 * kLanes;
    for (std::int64_t i = 0; i < m;) {
      const std::int64_t rows = m - i >= 4 ? 4 : 1;
      const Extent extent = extent_of(i, rows);
      if (j < extent.columns) {
        const std::int64_t first = extent.first_term, k = extent.terms_end - first;
        const float* const left = a + i * a_row + first * a_col;
        const float* const right = b + first * b_row + j;
        float* const to = c + i * c_row + j;
        if (rows == 4 && two) {
          Tile<4, 2>(k, left, a_row, a_col, right, b_row, to, c_row);
        } else if (rows == 4) {
          Tile<4, 1>(k, left, a_row, a_col, right, b_row, to, c_row);
        } else if (two) {
          Tile<1, 2>(k, left, a_row, a_col, right, b_row, to, c_row);
        } else {
          Tile<1, 1>(k, left, a_row, a_col, right, b_row, to, c_row);
        }
      }
      i += rows;
    }
    j += two ? 2 * kLanes : kLanes;
  }
}

// Multiplies 8 adjacent pairs by 8 complex numbers or by their conjugates.
PELAB_INLINE Floats TurnVector(Floats x, Floats rotations, bool conjugate) {
  const Ints swapped = {1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14};
  const Ints reals = {0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14};
  const Ints imaginaries = {1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15};
  const Floats signs = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
  const Floats across = Shuffled(x, swapped) * Shuffled(rotations, imaginaries) * signs;
  const Floats along = x * Shuffled(rotations, reals);
  return conjugate ? along - across : along + across;
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
PELAB_INLINE Floats LoadChannels(const float* from, std::int64_t count) {
  if (count >= kLanes) return Load(from);
  Floats x = {};
  for (std::int64_t i = 0; i < count; ++i) x[i] = from[i];
  return x;
}

PELAB_INLINE void StoreChannels(Floats x, std::int64_t count, float* to) {
  if (count >= kLanes) return Store(x, to);
  for (std::int64_t i = 0; i < count; ++i) to[i] = x[i];
}

template <class Element>
PELAB_INLINE Element* HeadOf(const HeadRows<Element>& view, std::int64_t batch, std::int64_t head) {
  return view.data + batch * view.batch_stride + head * view.head_stride;
}

// Copies the rows of one head with bias (the part of this head), rotation and scale. Each row is
// padded with zeros.
PELAB_INLINE void Pack(const float* from, std::int64_t row_stride, std::int64_t rows,
                       std::int64_t width, const float* bias, const Rotations& rotations,
                       float scale, float* to, std::int64_t to_stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < width; c += kLanes) {
      const std::int64_t count = width - c;
      Floats x = LoadChannels(from + i * row_stride + c, count);
      if (bias != nullptr) x += LoadChannels(bias + c, count);
      if (rotations.data != nullptr) {
        x = TurnVector(x, LoadChannels(rotations.data + i * rotations.row_stride + c, count),
                       false);
      }
      Store(x * scale, to + i * to_stride + c);
    }
  }
}

// Applies scale and inverse rotation to the rows of a gradient and stores them. `bias_sum`, if not
// null, gets the sum of the rows, which is the gradient of the bias.
PELAB_INLINE void Unpack(const float* from, std::int64_t from_stride, std::int64_t rows,
                         std::int64_t width, const Rotations& rotations, float scale,
                         float* bias_sum, float* to, std::int64_t row_stride) {
  for (std::int64_t c = 0; c < width; c += kLanes) {
    const std::int64_t count = width - c;
    Floats sum = {};
    for (std::int64_t i = 0; i < rows; ++i) {
      Floats x = Load(from + i * from_stride + c) * scale;
      if (rotations.data != nullptr) {
        x = TurnVector(x, LoadChannels(rotations.data + i * rotations.row_stride + c, count), true);
      }
      sum += x;
      StoreChannels(x, count, to + i * row_stride + c);
    }
    if (bias_sum != nullptr) StoreChannels(sum, count, bias_sum + c);
  }
}

// to (n, m) = from^T (m, n), where m and n are multiples of 16. Works on blocks of 16 by 16. Four
// rounds interleave the first and the second half of the rows, like a perfect shuffle of cards.
PELAB_INLINE void Transpose(const float* from, std::int64_t m, std::int64_t n, float* to) {
  const Ints low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  const Ints high = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  for (std::int64_t i = 0; i < m; i += kLanes) {
    for (std::int64_t j = 0; j < n; j += kLanes) {
      Floats rows[kLanes], dealt[kLanes];
      for (std::int64_t r = 0; r < kLanes; ++r) rows[r] = Load(from + (i + r) * n + j);
      for (int round = 0; round < 4; ++round) {
        for (std::int64_t r = 0; r < kLanes / 2; ++r) {
          dealt[2 * r] = Shuffled(rows[r], rows[r + kLanes / 2], low);
          dealt[2 * r + 1] = Shuffled(rows[r], rows[r + kLanes / 2], high);
        }
        for (std::int64_t r = 0; r < kLanes; ++r) rows[r] = dealt[r];
      }
      for (int r = 0; r < kLanes; ++r) Store(rows[r], to + (j + r) * m + i);
    }
  }
}

}  // namespace pelab::trainer
