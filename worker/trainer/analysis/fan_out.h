// Computes many ablated passes for little more than half of their cost. The layers before the
// ablated one are computed once. Replacing a head changes the residual stream only by that head's
// own term:
//
//   x_mid' = x_mid - (o_h - r_h) W_O[h]      (o_h the head's output, r_h what replaces it)
//
// From there the variants of a layer continue as one wide batch. If keys and values come from the
// input (KvSource::kInput), they are computed once for all variants.
//
// A wide batch holds variant 0 of every example, then variant 1, …: (V B, …). For the letters see
// passes.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "worker/trainer/analysis/passes.h"
#include "worker/trainer/model/decoder.h"

namespace pelab::trainer {

// One layer of a pass.
struct LayerTrace {
  at::Tensor x;      // (B, T, D): the input of the layer
  at::Tensor heads;  // (B, T', D): the outputs of the heads, without replacement
  at::Tensor x_mid;  // (B, T', D): the starting point of this layer's variants
  at::Tensor key;    // (B, T, H, d) if keys and values come from the input; else undefined
  at::Tensor value;
};

// A pass whose tensors are kept layer by layer, so that variants can continue from the middle.
struct Trace {
  Batch batch;
  at::Tensor input;  // (B, T, D)
  std::vector<LayerTrace> layers;
  at::Tensor logits;  // (B, C), or (B T, C) if every position is read

  // The part for examples [begin, begin + count), without copying.
  Trace Range(std::int64_t begin, std::int64_t count) const;
};

// Returns the tensor with which the pass continues after a layer, instead of its x_mid. May change
// the layer's trace.
using Onward = std::function<at::Tensor(std::int64_t layer, LayerTrace* trace)>;

// Runs a pass. `onward` null: the intact pass.
Trace RunTraced(const Decoder& decoder, const Batch& batch, const Onward& onward = nullptr);

// (V B, T', D): x_mid of a layer. Each variant replaces one head of `heads` by `replacement` ((1 or
// B, T', D), undefined for zeros).
Residual WithoutHeads(const Decoder& decoder, const Trace& trace, std::int64_t layer,
                      const std::vector<std::int64_t>& heads, const at::Tensor& replacement);

// (V, B, C) or (V, B T, C): the logits of variants that continue from `x_mid` (V B, T', D) of
// `layer`. In later layers the heads of `sets` (empty: none) are replaced by `replacement`.
at::Tensor GoOn(const Decoder& decoder, const Trace& trace, std::int64_t layer,
                const Residual& x_mid, const HeadSets& sets, const Replacement& replacement);

}  // namespace pelab::trainer
