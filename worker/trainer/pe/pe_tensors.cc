#include "worker/trainer/pe/pe_tensors.h"

#include <ATen/ATen.h>

#include <cstdlib>

namespace pelab::trainer {

at::Tensor ToTensor(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
                    const ParameterSet& parameters) {
  const at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(at::kDouble));
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  return tensor.to(parameters.flat().scalar_type()).to(parameters.device());
}

std::vector<double> NegativeDistances(std::int64_t length) {
  std::vector<double> distances(length * length);
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      distances[i * length + j] = -static_cast<double>(std::abs(i - j));
    }
  }
  return distances;
}

}  // namespace pelab::trainer
