// Sums over batches that stay on the device.
#pragma once

#include <ATen/core/Tensor.h>

namespace pelab::trainer {

// *sum += more; an undefined sum is 0.
inline void AddTo(const at::Tensor& more, at::Tensor* sum) {
  *sum = sum->defined() ? sum->add(more) : more;
}

}  // namespace pelab::trainer
