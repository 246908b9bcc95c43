// Ablation of a slice of the latents of latent attention, as in the authors' code. The slice enters
// the up-projections of the queries, keys and values of all heads as zeros, or as replacement
// values. The rotary parts stay (pe/pe.h).
//
// The up-projections are linear. The contribution of a slice to queries, keys and values is
// therefore the difference between projecting with and without it. To replace a slice, its
// contribution is left out. Then its mean contribution, or another example's contribution, is
// added.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/trainer/analysis/fan_out.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

// The replacement values for slices: zeros, their means, or the slices of other examples.
class SliceReplacement {
 public:
  SliceReplacement() = default;
  // The means over training examples [0, examples). Padding is left out as in MeanHeads. Throws
  // Stopped.
  static SliceReplacement Means(const Decoder& decoder, const DeviceData& data,
                                std::int64_t examples);
  // The slices of `donors`, one donor for each example of the batch.
  static SliceReplacement Of(Trace donors);

  // The part for examples [begin, begin + count) of the batch.
  SliceReplacement Range(std::int64_t begin, std::int64_t count) const;

  // The contribution that replaces `slice` in queries, keys and values: (1 or B, …); nullopt for
  // zeros.
  std::optional<Decoder::KeysValues> Added(const Decoder& decoder, std::int64_t layer,
                                           std::int64_t slice) const;

 private:
  std::vector<std::vector<Decoder::KeysValues>> means_;  // [layer][slice], (1, …)
  std::optional<Trace> donors_;
};

// (B, T', D): the heads' outputs of a layer with `slice` replaced. `x` (B, T, D) is the input of
// the layer.
at::Tensor HeadsWithoutSlice(const Decoder& decoder, std::int64_t layer, const at::Tensor& x,
                             const at::Tensor& input, const Batch& batch, std::int64_t slice,
                             const SliceReplacement& replacement);

}  // namespace pelab::trainer
