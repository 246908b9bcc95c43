// A job's data: fixed-length token sequences with one integer label each, training part first. Plain arrays, no LibTorch.
//
// A data set is a pure function of the task's fields (`task.*`) and the model's `max_len` (where the definition pads):
// example i is drawn from the counter-based generator at (data_seed, purpose, i), so it is the same on every device,
// LibTorch version and thread count.
//
// Token ids: 0 is padding, 1–4 are reserved, 5 … vocabulary-1 are words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/experiment/job.h"

namespace pelab::trainer {

inline constexpr std::int32_t kPadId = 0;
inline constexpr std::int32_t kFirstWordId = 5;

struct Dataset {
  std::int64_t length = 0;           // T: tokens a sequence, padding counted
  std::int64_t train_examples = 0;   // examples 0 … train_examples-1; the others are the test set
  std::vector<std::int32_t> tokens;  // (N, T), row-major
  std::vector<std::int32_t> lengths;  // (N): tokens before the padding
  std::vector<std::int32_t>
      labels;  // (N): the definition's integer, before it is mapped to a class
  // The labels that the definition can produce: label_min … label_min + label_count - 1.
  std::int64_t label_min = 0;
  std::int64_t label_count = 0;
  // The words with a meaning: the ordered pair of `distance`, the trigger set of `counting`.
  std::vector<std::int32_t> triggers;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t test_examples() const { return size() - train_examples; }
  bool HasPadding() const;
};

// How labels become the classes of the model's read-out (`task.label_space`, `task.scored_classes`).
struct LabelSpace {
  std::int64_t classes = 0;  // width of the read-out
  std::int64_t offset = 0;   // class = label - offset
  bool score_zero = true;    // false: examples of class 0 enter neither loss nor accuracy
};
// Throws TrainerError(kBadSpec) when a label of the data has no class.
LabelSpace LabelSpaceOf(const experiment::Job& job, const Dataset& data);

// Generates the job's data. Throws TrainerError(kBadSpec) when the fields contradict each other or when no test set can
// be kept apart from the training set.
Dataset MakeDataset(const experiment::Job& job);

// SHA-256, lower-case hexadecimal, over T and the number of training examples (64-bit), tokens, lengths and labels
// (32-bit), all little-endian, in this order.
std::string DatasetSha256(const Dataset& data);

}  // namespace pelab::trainer
