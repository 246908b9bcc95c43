// Tensors of independent normal numbers, the same in every run, the distance between two tensors,
// and the device that the kernels' tests run on.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/base/random.h"

namespace pelab::trainer {

// The CPU, or the device that the environment variable PELAB_TEST_DEVICE names ("cuda:0").
inline at::Device TestDevice() {
  const char* const name = std::getenv("PELAB_TEST_DEVICE");
  return at::Device(name == nullptr ? "cpu" : name);
}

// On TestDevice().
inline at::Tensor RandomTensor(const std::string& name, at::IntArrayRef shape) {
  const at::Tensor x = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  CounterRandom random(7, "test/" + name);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data_ptr<float>()[i] = static_cast<float>(random.Normal());
  }
  return x.to(TestDevice());
}

// largest error of 32-bit floats against 64-bit ones
inline constexpr double kMostFloatError = 1e-5;

// |found - expected| / |expected|, with the norms of the whole tensors.
inline double RelativeError(const at::Tensor& found, const at::Tensor& expected) {
  return ((found.to(at::kDouble) - expected).norm() / expected.norm()).item<double>();
}

}  // namespace pelab::trainer
