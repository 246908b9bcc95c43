// Head ablation: counts how many examples are still right, and how their loss changes, when one
// head's output is replaced before the output projection (its bias stays). Without dropout.
//
// Two paths give the same results within rounding: one whole pass for each entry, and the fan-out
// (fan_out.h), which the analysis uses.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/experiment/analysis.h"
#include "worker/trainer/analysis/paired.h"
#include "worker/trainer/analysis/passes.h"
#include "worker/trainer/analysis/replacement_values.h"
#include "worker/trainer/analysis/slices.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

enum class Target {
  kHead,  // a head's output
  // The entries of the authors' code for latent attention: columns h d … (h+1) d - 1 of the three
  // up-projections. These columns take one slice of the latents, for all heads; the rotary parts
  // stay.
  kLatentSlice,
};

enum class Hygiene {
  kClean,    // one entry at a time
  kAuthors,  // as in the authors' code: entry H-1 of every earlier layer stays ablated
};

// One ablation: its target, its restore policy and its replacement values.
struct Ablation {
  Target target = Target::kHead;
  Hygiene hygiene = Hygiene::kClean;
  Replacement heads;        // for kHead
  SliceReplacement slices;  // for kLatentSlice

  // The part for examples [begin, begin + count) of the batch.
  Ablation Range(std::int64_t begin, std::int64_t count) const {
    return {target, hygiene, heads.Range(begin, count), slices.Range(begin, count)};
  }
};

// The number of entries per layer: the heads, or the slices of the latents, at most H.
std::int64_t EntriesOf(const Decoder& decoder, Target target);

// (L, E, B, C): the logits of one batch with each entry ablated, by fan-out and one by one. The
// batch must be small enough for one evaluation pass (train/evaluate.h). `base_logits`, if not
// null, receives the logits (B, C) of the pass from which the variants start: the intact pass
// unless entries stay ablated. AblatedLogits throws Stopped if a stop was requested.
at::Tensor AblatedLogits(const Decoder& decoder, const Batch& batch, const Ablation& ablation,
                         at::Tensor* base_logits = nullptr);
at::Tensor AblatedLogitsNaive(const Decoder& decoder, const Batch& batch, const Ablation& ablation);

struct HeadAblationOptions {
  Method method = Method::kZero;
  bool authors_target = false;  // use the authors' entries if the PE has latents
  Hygiene hygiene = Hygiene::kClean;
  bool all_data = false;          // use training and test set; else the test set
  std::int64_t max_examples = 0;  // use only this many first examples; 0: all
};
// Throws TrainerError(kBadSpec) if this trainer does not know a value.
HeadAblationOptions HeadAblationOptionsFrom(const experiment::Analysis& analysis);

struct HeadAblationResult {
  IntactScore intact;
  // [layer][head]; empty if the entry does not exist.
  std::vector<std::vector<std::optional<PairedScore>>> entries;
};

// Uses the fan-out. `data_seed` determines the donors. Throws Stopped between chunks if a stop was
// requested, and TrainerError(kNonFiniteLoss) if a loss is not finite.
HeadAblationResult AblateHeads(const Decoder& decoder, const DeviceData& data,
                               std::int64_t data_seed, const HeadAblationOptions& options);

}  // namespace pelab::trainer
