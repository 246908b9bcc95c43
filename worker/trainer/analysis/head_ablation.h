// Head ablation: how many examples are still right, and how their loss changes, when one head's output is replaced
// before the output projection (its bias stays), dropout off.
//
// Two paths give the same figures: one whole pass an entry, and the fan-out (fan_out.h), which the analysis uses.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/experiment/analysis.h"
#include "worker/trainer/analysis/paired.h"
#include "worker/trainer/analysis/passes.h"
#include "worker/trainer/analysis/slices.h"
#include "worker/trainer/analysis/substitutes.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

enum class Target {
  kHead,         // a head's output
  kLatentSlice,  // as in the authors' code for latent attention: columns h d … (h+1) d - 1 of the three up-projections,
                 // a slice of the latents for all heads; the rotary parts stay
};

enum class Hygiene {
  kClean,    // one entry at a time
  kAuthors,  // as in the authors' code: entry H-1 of every earlier layer stays ablated
};

// What is ablated and what takes its place.
struct Ablation {
  Target target = Target::kHead;
  Hygiene hygiene = Hygiene::kClean;
  Replacement heads;        // for kHead
  SliceReplacement slices;  // for kLatentSlice

  // For examples [begin, begin + count) of the batch alone.
  Ablation Range(std::int64_t begin, std::int64_t count) const {
    return {target, hygiene, heads.Range(begin, count), slices.Range(begin, count)};
  }
};

// Entries that a layer has: the heads, or the slices of the latents, at most H.
std::int64_t EntriesOf(const Decoder& decoder, Target target);

// (L, E, B, C): the logits of one batch with each entry ablated, by fan-out and one by one. For a batch as small as a pass
// of evaluation takes (train/evaluate.h). `base_logits`, if not null, gets (B, C): those of the pass that the variants go
// on from, the intact one unless something stays ablated.
at::Tensor AblatedLogits(const Decoder& decoder, const Batch& batch, const Ablation& ablation,
                         at::Tensor* base_logits = nullptr);
at::Tensor AblatedLogitsNaive(const Decoder& decoder, const Batch& batch, const Ablation& ablation);

struct HeadAblationOptions {
  Method method = Method::kZero;
  bool authors_target = false;  // the authors' entries, where the PE has others than heads
  Hygiene hygiene = Hygiene::kClean;
  bool all_data = false;          // training and test set; else the test set
  std::int64_t max_examples = 0;  // the first so many of them; 0: all
};
// Throws TrainerError(kBadSpec) for a value that this trainer does not know.
HeadAblationOptions HeadAblationOptionsFrom(const experiment::Analysis& analysis);

struct HeadAblationResult {
  IntactScore intact;
  std::vector<std::vector<std::optional<PairedScore>>>
      entries;  // [layer][head]; none where an entry does not exist
};

// By fan-out. `data_seed` chooses donors. Throws Stopped between chunks when a stop was asked for.
HeadAblationResult AblateHeads(const Decoder& decoder, const DeviceData& data,
                               std::int64_t data_seed, const HeadAblationOptions& options);

}  // namespace pelab::trainer
