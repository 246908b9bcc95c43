// Passes through the decoder without dropout, in which the outputs of some heads are replaced
// before the output projection (its bias stays). This is the plain way, with one whole pass for
// each ablation; fan_out.h computes many ablations faster.
//
// Letters: B batch, T positions, T' computed positions (model/decoder.h), H heads, D model width, d
// = D/H, C classes. With targets by position, B in the shapes of logits, classes and predictions
// means B T.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "worker/trainer/model/decoder.h"

namespace pelab::trainer {

// The heads of each layer that are replaced, in ascending order.
using HeadSets = std::vector<std::vector<std::int64_t>>;

// Replacement values for the heads' outputs: for each layer (1 or B, T', D), the heads side by
// side. Empty: zeros.
class Replacement {
 public:
  Replacement() = default;
  explicit Replacement(std::vector<at::Tensor> layers) : layers_(std::move(layers)) {}

  bool is_zero() const { return layers_.empty(); }
  // Undefined for zeros.
  at::Tensor At(std::int64_t layer) const { return is_zero() ? at::Tensor() : layers_[layer]; }
  // The part for examples [begin, begin + count) of the batch.
  Replacement Range(std::int64_t begin, std::int64_t count) const;

 private:
  std::vector<at::Tensor> layers_;
};

// `heads` (n B', T', D) with the outputs of the heads in `set` taken from `replacement` ((B', T',
// D) or (1, T', D); undefined: zeros). `replacement` is repeated for the n variants. Returns
// `heads` itself if `set` is empty.
at::Tensor ReplaceHeads(const at::Tensor& heads, const std::vector<std::int64_t>& set,
                        const at::Tensor& replacement, std::int64_t head_dim);

// (B, C): a whole pass with the heads of `sets` replaced.
at::Tensor LogitsReplacing(const Decoder& decoder, const Batch& batch, const HeadSets& sets,
                           const Replacement& replacement);

}  // namespace pelab::trainer
