// Passes through the decoder, dropout off, with some heads' outputs replaced before the output projection (its bias
// stays): the plain way, one whole pass each. fan_out.h is the quick way to many of them.
//
// Letters: B batch, T positions, T' computed positions (model/decoder.h), H heads, D model width, d = D/H, C classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "worker/trainer/model/decoder.h"

namespace pelab::trainer {

// The heads of each layer that are replaced, ascending.
using HeadSets = std::vector<std::vector<std::int64_t>>;

// What takes the place of the heads' outputs: for each layer (1 or B, T', D), the heads side by side. Empty: zeros.
class Replacement {
 public:
  Replacement() = default;
  explicit Replacement(std::vector<at::Tensor> layers) : layers_(std::move(layers)) {}

  bool is_zero() const { return layers_.empty(); }
  // Undefined for zeros.
  at::Tensor At(std::int64_t layer) const { return is_zero() ? at::Tensor() : layers_[layer]; }
  // For examples [begin, begin + count) of the batch alone.
  Replacement Range(std::int64_t begin, std::int64_t count) const;

 private:
  std::vector<at::Tensor> layers_;
};

// `heads` (n B', T', D) with the outputs of `set` taken from `replacement` ((B', T', D) or (1, T', D); undefined: zeros),
// which is repeated for the n variants. Gives `heads` itself where `set` is empty.
at::Tensor ReplaceHeads(const at::Tensor& heads, const std::vector<std::int64_t>& set,
                        const at::Tensor& replacement, std::int64_t head_dim);

// (B, C): a whole pass with the heads of `sets` replaced.
at::Tensor LogitsReplacing(const Decoder& decoder, const Batch& batch, const HeadSets& sets,
                           const Replacement& replacement);

}  // namespace pelab::trainer
