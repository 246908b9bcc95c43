// Cumulative ablation: removes heads one after another and counts after each removal which examples
// are still right. The outputs of removed heads are replaced before the output projection (its bias
// stays). Without dropout.
//
// The greedy order is chosen on training examples. Each step removes, in addition to the heads
// removed before, the head without which the fewest examples are right. Of equal heads it takes the
// lowest layer, then the lowest head.
//
// The greedy order is compared with random orders. Order k is the start of a shuffle of all heads
// (layer by layer) by CounterRandom(task.data_seed, "ablation/order", k): for i from the number of
// heads down to 2, swap place i-1 with place Below(i). Curves are measured on test examples.
#pragma once

#include <cstdint>
#include <vector>

#include "core/experiment/analysis.h"
#include "core/experiment/job.h"
#include "worker/trainer/analysis/paired.h"
#include "worker/trainer/analysis/replacement_values.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

struct CumulativeAblationOptions {
  Method method = Method::kZero;
  std::int64_t steps = 16;  // heads to remove; at most all heads
  std::int64_t orders = 5;  // number of random orders
  // Use only this many first examples of the training and of the test set; 0: all.
  std::int64_t max_examples = 2000;
};
// Throws TrainerError(kBadSpec) if this trainer does not know a value.
CumulativeAblationOptions CumulativeAblationOptionsFrom(const experiment::Analysis& analysis);
// Throws TrainerError(kBadSpec) if the curves of this job would exceed the number of removals that
// a result may hold.
void CheckRemovals(const CumulativeAblationOptions& options, const experiment::Job& job);

struct Head {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  bool operator==(const Head& other) const { return layer == other.layer && head == other.head; }
};

struct RemovalCurve {
  std::vector<Head> heads;            // in the order of removal
  std::vector<std::int64_t> correct;  // number of test examples that are right after each removal
};

struct CumulativeAblationResult {
  IntactScore intact;  // of the test examples
  RemovalCurve greedy;
  std::vector<RemovalCurve> random;
};

// Throws Stopped between chunks if a stop was requested.
CumulativeAblationResult AblateCumulatively(const Decoder& decoder, const DeviceData& data,
                                            std::int64_t data_seed,
                                            const CumulativeAblationOptions& options);

}  // namespace pelab::trainer
