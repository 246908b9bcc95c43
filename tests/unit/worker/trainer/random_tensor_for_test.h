// Tensors of independent normal numbers, the same in every run, and how far one tensor is from another.
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

inline constexpr double kMostFloatError = 1e-5;  // of 32-bit floats against 64-bit ones

// |found - expected| / |expected|, of whole tensors.
inline double RelativeError(const at::Tensor& found, const at::Tensor& expected) {
  return ((found.to(at::kDouble) - expected).norm() / expected.norm()).item<double>();
}

}  // namespace pelab::trainer
