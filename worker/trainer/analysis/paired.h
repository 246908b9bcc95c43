// Compares ablated passes with the intact one, example by example.
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
// The test set, or with `all_data` training and test set. Only its first `max_examples`; 0: all.
ExampleRange ChooseExamples(const DeviceData& data, bool all_data, std::int64_t max_examples);

// The score of one ablation over n scored examples, paired with the intact model's predictions for
// the same examples.
struct PairedScore {
  std::int64_t correct = 0;
  std::int64_t lost = 0;    // right when intact, wrong when ablated
  std::int64_t gained = 0;  // wrong when intact, right when ablated
  double nll = 0;           // mean, in nats
  // The standard error of the mean change of the examples' negative log-likelihood: sqrt((mean of
  // squares - square of the mean) / n).
  double nll_standard_error = 0;
};

struct IntactScore {
  std::int64_t total = 0;  // scored examples
  std::int64_t correct = 0;
  double nll = 0;  // mean, in nats; 0 if no example is scored
};

// The predictions for one batch. The prediction is the class with the largest logit; of equal
// logits the lowest class counts.
struct Predictions {
  at::Tensor right;  // (…, B), bool: right and scored
  at::Tensor nll;    // (…, B), double: 0 if not scored
};
// `logits` (…, B, C), `classes` (B). Examples of `ignored_class` are not scored.
Predictions Predict(const at::Tensor& logits, const at::Tensor& classes,
                    std::int64_t ignored_class);

// Sums over batches on the device, without synchronizing it.
class IntactTally {
 public:
  void Add(const Predictions& intact, const at::Tensor& classes, std::int64_t ignored_class);
  IntactScore Finish() const;

 private:
  at::Tensor sums_;  // (3), double: scored, right, nll
};

class PairedTally {
 public:
  // Adds `ablated` (V, B), compared with `intact` (B).
  void Add(const Predictions& intact, const Predictions& ablated);
  // One score per variant. `total` is that of the intact pass. Throws TrainerError(kNonFiniteLoss)
  // if a loss is not finite.
  std::vector<PairedScore> Finish(std::int64_t total) const;

 private:
  at::Tensor sums_;  // (6, V), double: right, lost, gained, nll, change of nll, its square
};

}  // namespace pelab::trainer
