// Cumulative ablation: heads are removed one after another, and what is still right is counted after each removal. Removed
// heads' outputs are replaced before the output projection (its bias stays), dropout off.
//
// The greedy order is chosen on training examples: at each step the head whose removal, with those removed before, leaves
// the fewest of them right; of equal ones the lowest layer, then the lowest head. It is compared with random orders: order k
// is the start of a shuffle of all heads (layer by layer) by CounterRandom(task.data_seed, "ablation/order", k), for i from
// the number of heads down to 2 swapping place i-1 with place Below(i). Curves are measured on test examples.
#pragma once

#include <cstdint>
#include <vector>

#include "core/experiment/analysis.h"
#include "core/experiment/job.h"
#include "worker/trainer/analysis/paired.h"
#include "worker/trainer/analysis/substitutes.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

struct CumulativeAblationOptions {
  Method method = Method::kZero;
  std::int64_t steps = 16;  // heads to remove; at most all there are
  std::int64_t orders = 5;  // random ones
  std::int64_t max_examples =
      2000;  // the first so many of the training and of the test set; 0: all
};
// Throws TrainerError(kBadSpec) for a value that this trainer does not know.
CumulativeAblationOptions CumulativeAblationOptionsFrom(const experiment::Analysis& analysis);
// Throws TrainerError(kBadSpec) where the curves of this job would be more than a result may hold.
void CheckRemovals(const CumulativeAblationOptions& options, const experiment::Job& job);

struct Head {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  bool operator==(const Head& other) const { return layer == other.layer && head == other.head; }
};

struct RemovalCurve {
  std::vector<Head> heads;            // in the order of removal
  std::vector<std::int64_t> correct;  // test examples that are right after each removal
};

struct CumulativeAblationResult {
  IntactScore intact;  // of the test examples
  RemovalCurve greedy;
  std::vector<RemovalCurve> random;
};

// Throws Stopped between chunks when a stop was asked for.
CumulativeAblationResult AblateCumulatively(const Decoder& decoder, const DeviceData& data,
                                            std::int64_t data_seed,
                                            const CumulativeAblationOptions& options);

}  // namespace pelab::trainer
