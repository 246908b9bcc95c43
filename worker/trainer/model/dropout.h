// Dropout whose randomness is addressed by (seed, step, layer, site, element), so that no generator
// state has to be kept in a checkpoint and a resumed run repeats bit for bit.
//
// On the CPU the masks come from FillDropoutMask. On CUDA, where drawing them that way would cost
// several passes over 64-bit integers, LibTorch's own Philox draws them after being seeded with
// (seed, step): just as reproducible on one device kind, but another stream than the CPU's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/trainer/model/config.h"

namespace pelab::trainer {

// One training step's dropout. Make one a step and pass it through the forward pass; null means
// evaluation.
class Dropout {
 public:
  Dropout(const ModelConfig& config, std::int64_t seed, std::int64_t step, at::Device device);

  // The same step's dropout for a part of its batch: example 0 of what it is applied to is example
  // `first_example` of the batch, so that the parts together drop what the whole would (CPU; on
  // CUDA the parts draw one after the other).
  Dropout From(std::int64_t first_example) const;

  // x times a fresh mask, or x itself where the configuration has no dropout at `site`.
  at::Tensor Apply(const at::Tensor& x, std::int64_t layer, DropoutSite site) const;
  // The mask alone, 0 or 1/(1-p) in 32-bit floats; CPU only. The first dimension counts examples.
  at::Tensor Mask(at::IntArrayRef shape, std::int64_t layer, DropoutSite site) const;
  bool ActsAt(DropoutSite site) const {
    return config_.dropout > 0 && config_.dropout_at[static_cast<int>(site)];
  }

 private:
  const ModelConfig& config_;
  std::int64_t seed_;
  std::int64_t step_;
  std::int64_t first_example_ = 0;
};

}  // namespace pelab::trainer
