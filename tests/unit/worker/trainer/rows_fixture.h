// The sequences of a data set, without their padding.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/trainer/task/dataset.h"

namespace pelab::trainer {

using Row = std::vector<std::int32_t>;

inline Row RowOf(const Dataset& data, std::int64_t index) {
  const auto begin = data.tokens.begin() + index * data.length;
  return Row(begin, begin + data.lengths[index]);
}

}  // namespace pelab::trainer
