// Tensors of independent normal numbers, the same in every run, and the distance between two
// tensors.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "core/base/random.h"

namespace pelab::trainer {

inline at::Tensor RandomTensor(const std::string& name, at::IntArrayRef shape) {
  const at::Tensor x = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  CounterRandom random(7, "test/" + name);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data_ptr<float>()[i] = static_cast<float>(random.Normal());
  }
  return x;
}

// largest error of 32-bit floats against 64-bit ones
inline constexpr double kMostFloatError = 1e-5;

// |found - expected| / |expected|, with the norms of the whole tensors.
inline double RelativeError(const at::Tensor& found, const at::Tensor& expected) {
  return ((found.to(at::kDouble) - expected).norm() / expected.norm()).item<double>();
}

}  // namespace pelab::trainer
