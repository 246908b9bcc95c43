// Layer ablation: counts which examples are still right when the outputs of all heads of one layer
// are replaced before the output projection (its bias stays). Without dropout.
#pragma once

#include <cstdint>
#include <vector>

#include "core/experiment/analysis.h"
#include "worker/trainer/analysis/paired.h"
#include "worker/trainer/analysis/replacement_values.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

struct LayerAblationOptions {
  Method method = Method::kZero;
  bool all_data = false;          // use training and test set; else the test set
  std::int64_t max_examples = 0;  // use only this many first examples; 0: all
};
// Throws TrainerError(kBadSpec) if this trainer does not know a value.
LayerAblationOptions LayerAblationOptionsFrom(const experiment::Analysis& analysis);

struct LayerAblationResult {
  IntactScore intact;
  std::vector<PairedScore> layers;
};

// `data_seed` determines the donors. Throws Stopped between chunks if a stop was requested, and
// TrainerError(kNonFiniteLoss) if a loss is not finite.
LayerAblationResult AblateLayers(const Decoder& decoder, const DeviceData& data,
                                 std::int64_t data_seed, const LayerAblationOptions& options);

}  // namespace pelab::trainer
