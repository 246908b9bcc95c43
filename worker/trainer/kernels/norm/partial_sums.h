// Adds partial sums in a fixed order, so that results do not depend on which thread computed which
// part.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pelab::trainer {

// sums[c] = the sum over rows r of partial[r stride + c], for columns c.
inline void SumPartials(const float* partial, std::int64_t rows, std::int64_t stride,
                        std::int64_t columns, float* sums) {
  std::fill_n(sums, columns, 0.0f);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < columns; ++c) sums[c] += partial[row * stride + c];
  }
}

}  // namespace pelab::trainer
