// Head ablation: how many examples are still right when one head's output is set to zero before the output projection
// (its bias stays), dropout off.
//
// Two paths give the same counts. The naive one runs the whole model once a head. The fan-out keeps what comes before the
// ablated layer, subtracts each head's own contribution o_h W_O[h] from the residual stream, and lets the H variants of a
// layer go on together as one wide batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/spec/canonical.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {

enum class Hygiene {
  kClean,    // one head at a time
  kAuthors,  // as in the authors' code: the last head of every earlier layer stays ablated
};

struct HeadAblationOptions {
  Hygiene hygiene = Hygiene::kClean;
  bool all_data = false;          // training and test set; else the test set
  std::int64_t max_examples = 0;  // the first so many of them; 0: all
};
// Throws TrainerError(kBadSpec) for a parameter that this trainer does not know.
HeadAblationOptions HeadAblationOptionsFrom(const spec::Analysis& analysis);

struct HeadAblationResult {
  std::int64_t total = 0;  // scored examples
  std::int64_t intact_correct = 0;
  std::vector<std::vector<std::int64_t>> correct;  // [layer][head]
};

// By fan-out. Throws Stopped between chunks when a stop was asked for.
HeadAblationResult AblateHeads(const Decoder& decoder, const DeviceData& data,
                               const HeadAblationOptions& options);

// (L, H, B, C): the logits of one batch with each head ablated, by fan-out and one by one. For a batch small enough.
at::Tensor AblatedLogits(const Decoder& decoder, const Batch& batch, Hygiene hygiene);
at::Tensor AblatedLogitsNaive(const Decoder& decoder, const Batch& batch, Hygiene hygiene);

}  // namespace pelab::trainer
