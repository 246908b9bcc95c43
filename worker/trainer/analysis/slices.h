// Ablation of a slice of the latents of latent attention, as the authors' code does it: a slice enters the up-projections of
// queries, keys and values of all heads as zeros (or as what replaces it), the rotary parts stay (pe/pe.h).
//
// The up-projections are linear. So what a slice adds to queries, keys and values is the difference between projecting with
// and without it, and replacing a slice by its mean, or by another example's, is adding the mean of that difference, or the
// other example's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/trainer/analysis/fan_out.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

// What takes the place of slices: nothing, their means, or those of other examples.
class SliceReplacement {
 public:
  SliceReplacement() = default;
  // The means over training examples [0, examples), pads left out as by MeanHeads. Throws Stopped.
  static SliceReplacement Means(const Decoder& decoder, const DeviceData& data,
                                std::int64_t examples);
  // The slices of `donors`, one for each example of the batch.
  static SliceReplacement Of(Trace donors);

  // For examples [begin, begin + count) of the batch alone.
  SliceReplacement Range(std::int64_t begin, std::int64_t count) const;

  // What the replacement of `slice` adds to queries, keys and values, (1 or B, …); nothing for zeros.
  std::optional<Decoder::KeysValues> Added(const Decoder& decoder, std::int64_t layer,
                                           std::int64_t slice) const;

 private:
  std::vector<std::vector<Decoder::KeysValues>> means_;  // [layer][slice], (1, …)
  std::optional<Trace> donors_;
};

// (B, T', D): a layer's heads with `slice` replaced; `x` (B, T, D) enters the layer.
at::Tensor HeadsWithoutSlice(const Decoder& decoder, std::int64_t layer, const at::Tensor& x,
                             const at::Tensor& input, const Batch& batch, std::int64_t slice,
                             const SliceReplacement& replacement);

}  // namespace pelab::trainer
