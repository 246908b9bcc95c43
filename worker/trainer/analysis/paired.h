// Ablated passes counted against the intact one, example by example.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

// Examples [begin, end) of the data set.
struct ExampleRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
// The test set, or with `all_data` training and test set; the first `max_examples` of them, 0 for all.
ExampleRange ChooseExamples(const DeviceData& data, bool all_data, std::int64_t max_examples);

// One ablation over n scored examples, paired with the intact model's predictions of the same examples.
struct PairedScore {
  std::int64_t correct = 0;
  std::int64_t lost = 0;    // right intact, wrong ablated
  std::int64_t gained = 0;  // wrong intact, right ablated
  double nll = 0;           // mean, in nats
  // Of the mean change of the examples' negative log-likelihood: sqrt((mean of squares - square of the mean) / n).
  double nll_standard_error = 0;
};

struct IntactScore {
  std::int64_t total = 0;  // scored examples
  std::int64_t correct = 0;
  double nll = 0;  // mean, in nats; 0 where nothing is scored
};

// The predictions of one batch. A prediction is the largest logit, the lowest class of equal ones.
struct Predictions {
  at::Tensor right;  // (…, B), bool: right and scored
  at::Tensor nll;    // (…, B), double: 0 where not scored
};
// `logits` (…, B, C), `classes` (B); examples of `ignored_class` are not scored.
Predictions Predict(const at::Tensor& logits, const at::Tensor& classes,
                    std::int64_t ignored_class);

// Sums over batches, on the device, without synchronising it.
class IntactTally {
 public:
  void Add(const Predictions& intact, const at::Tensor& classes, std::int64_t ignored_class);
  IntactScore Finish() const;

 private:
  at::Tensor sums_;  // (3), double: scored, right, nll
};

class PairedTally {
 public:
  // `ablated` (V, B) against `intact` (B).
  void Add(const Predictions& intact, const Predictions& ablated);
  // One score a variant; `total` of the intact pass. Throws TrainerError(kNonFiniteLoss) where a loss is no finite number.
  std::vector<PairedScore> Finish(std::int64_t total) const;

 private:
  at::Tensor sums_;  // (6, V), double: right, lost, gained, nll, change of nll, its square
};

}  // namespace pelab::trainer
