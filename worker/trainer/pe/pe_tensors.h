// Helpers that several PEs share. They make tensors on the parameters' device and in the
// parameters' type.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "worker/trainer/parameters/parameters.h"
#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/tables.h"

namespace pelab::trainer {

// `values`, in row-major order, as a tensor of `shape` with the parameters' device and type.
at::Tensor ToTensor(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
                    const ParameterSet& parameters);

// -|j-i| for the distances j - i = -(T-1) … T-1: (2T-1).
std::vector<double> NegativeDistances(std::int64_t length);

// row(distance) for the distances j - i = -(length-1) … length-1: (2 length - 1), 64-bit, on the
// parameters' device.
at::Tensor RowsByDistance(std::int64_t length, const ParameterSet& parameters,
                          const std::function<std::int64_t(std::int64_t distance)>& row);

// The entries of `by_distance` (…, 2 max_len - 1) that sequences of `length` use: (…, 2T-1).
at::Tensor WithinLength(const at::Tensor& by_distance, std::int64_t length);

// A sinusoid of base 10000 that is added to the token embeddings. The table is computed at the
// first use.
class InputSinusoid {
 public:
  InputSinusoid(const PeContext& context, SinusoidLayout layout);
  at::Tensor Rows(std::int64_t length);  // (T, D)

 private:
  const ModelConfig& config_;
  const ParameterSet& parameters_;
  SinusoidLayout layout_;
  at::Tensor table_;  // (max_len, D)
};

// The values of RotaryRotations or SlicedRotations (tables.h) as complex numbers: (length, 1,
// width/2).
at::Tensor ToRotations(const std::vector<double>& values, std::int64_t length,
                       const ParameterSet& parameters);
// Throws TrainerError(kBadSpec) if the head size is odd, so that channels cannot be paired.
void RequirePairs(const PeContext& context);

}  // namespace pelab::trainer
