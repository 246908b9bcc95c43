// Many ablated passes for little more than half of their cost. What comes before the ablated layer is computed once; a
// head that is replaced changes the residual stream by its own term alone,
//
//   x_mid' = x_mid - (o_h - r_h) W_O[h]      (o_h the head's output, r_h what replaces it)
//
// and the variants of a layer go on together as one wide batch. Where keys and values come from the input
// (KvSource::kInput) they are computed once for all of them.
//
// A wide batch holds variant 0 of every example, then variant 1, …: (V B, …). Letters as in passes.h.
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
  at::Tensor x;      // (B, T, D): what enters the layer
  at::Tensor heads;  // (B, T', D): the heads' outputs, none replaced
  at::Tensor x_mid;  // (B, T', D): what the variants of this layer start from
  at::Tensor key;    // (B, T, H, d), where keys and values come from the input; else undefined
  at::Tensor value;
};

// A pass, kept layer by layer so that variants can go on from the middle.
struct Trace {
  Batch batch;
  at::Tensor input;  // (B, T, D)
  std::vector<LayerTrace> layers;
  at::Tensor logits;  // (B, C)

  // Of examples [begin, begin + count) alone, without copying.
  Trace Range(std::int64_t begin, std::int64_t count) const;
};

// What goes on from a layer in place of its x_mid; may change the layer's trace.
using Onward = std::function<at::Tensor(std::int64_t layer, LayerTrace* trace)>;

// A pass; `onward` null: the intact one.
Trace RunTraced(const Decoder& decoder, const Batch& batch, const Onward& onward = nullptr);

// (V B, T', D): x_mid of a layer with each head of `heads` in turn replaced by `replacement` ((1 or B, T', D), undefined
// for zeros).
Residual WithoutHeads(const Decoder& decoder, const Trace& trace, std::int64_t layer,
                      const std::vector<std::int64_t>& heads, const at::Tensor& replacement);

// (V, B, C): the logits of variants that stand at `x_mid` (V B, T', D) of `layer`. In the layers after it the heads of
// `sets` (empty: none) are replaced by `replacement`.
at::Tensor GoOn(const Decoder& decoder, const Trace& trace, std::int64_t layer,
                const Residual& x_mid, const HeadSets& sets, const Replacement& replacement);

}  // namespace pelab::trainer
