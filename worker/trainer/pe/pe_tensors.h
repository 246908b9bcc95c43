// What several PEs share: tables as tensors on the parameters' device and in their type.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/trainer/model/parameters.h"
#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/tables.h"

namespace pelab::trainer {

// `values`, row-major, as a tensor of `shape` with the parameters' device and type.
at::Tensor ToTensor(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
                    const ParameterSet& parameters);

// -|i-j| for query i and key j: (T, T).
std::vector<double> NegativeDistances(std::int64_t length);

// A sinusoid of base 10000 for the token embeddings. Made at its first use.
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

// RotaryTurns or SlicedTurns of tables.h as complex numbers: (length, 1, width/2).
at::Tensor Turns(const std::vector<double>& values, std::int64_t length,
                 const ParameterSet& parameters);
// Adjacent pairs of `x` (B, T', H, width) as complex numbers times rows first … first+T'-1 of `turns` (length, 1 or H,
// width/2).
at::Tensor TurnPairs(const at::Tensor& x, const at::Tensor& turns, std::int64_t first);
// Throws TrainerError(kBadSpec) where the heads have no whole number of pairs.
void RequirePairs(const PeContext& context);

}  // namespace pelab::trainer
