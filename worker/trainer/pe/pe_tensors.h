// Small helpers that several PEs share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/trainer/model/parameters.h"

namespace pelab::trainer {

// `values`, row-major, as a tensor of `shape` with the parameters' device and type.
at::Tensor ToTensor(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
                    const ParameterSet& parameters);

// -|i-j| for query i and key j: (T, T).
std::vector<double> NegativeDistances(std::int64_t length);

}  // namespace pelab::trainer
