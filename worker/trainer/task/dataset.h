// A job's data: token sequences of fixed length with one integer label each, or one for each
// position. The training examples come first. Plain arrays, no LibTorch.
//
// A data set is a pure function of the task's fields (`task.*`) and of the file that they may name;
// `model.max_len` only limits task.length. Example i of a generated set is drawn from the
// counter-based generator at (data_seed, purpose, i), so it is the same for every device, LibTorch
// version and thread count.
//
// Token ids of generated sets: 0 is padding, 1–4 are reserved, 5 … vocabulary-1 are words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/experiment/job.h"

namespace pelab::trainer {

inline constexpr std::int32_t kPadId = 0;
inline constexpr std::int32_t kFirstWordId = 5;

struct Dataset {
  std::int64_t length = 0;           // T: tokens per sequence, including padding
  std::int64_t train_examples = 0;   // examples 0 … train_examples-1; the others are the test set
  std::vector<std::int32_t> tokens;  // (N, T), row-major
  std::vector<std::int32_t> lengths;  // (N): tokens before the padding
  // (N), or (N, T) by position: the label as the task defines it, before it is mapped to a class.
  // kNoTarget (core/safetensors/task_file.h) at positions that have none.
  std::vector<std::int32_t> labels;
  bool by_position = false;
  // The definition can produce the labels label_min … label_min + label_count - 1.
  std::int64_t label_min = 0;
  std::int64_t label_count = 0;
  // The words with a meaning: for `distance` the ordered pair of triggers, for `counting` the set
  // of triggers.
  std::vector<std::int32_t> triggers;

  std::int64_t size() const { return static_cast<std::int64_t>(lengths.size()); }
  std::int64_t test_examples() const { return size() - train_examples; }
  bool HasPadding() const;
};

// How labels are mapped to the classes of the model's read-out (`task.label_space`,
// `task.scored_classes`).
struct LabelSpace {
  std::int64_t classes = 0;  // width of the read-out
  std::int64_t offset = 0;   // class = label - offset
  bool score_zero = true;    // false: examples of class 0 count in neither loss nor accuracy
};
// Throws TrainerError(kBadSpec) if the definition can produce a label that has no class.
LabelSpace LabelSpaceOf(const experiment::Job& job, const Dataset& data);

// Generates the job's data. Throws TrainerError(kBadSpec) if the fields contradict each other or if
// too few different sequences exist.
Dataset MakeDataset(const experiment::Job& job);

// The labels as files have them: -1 at positions that have none.
std::vector<std::int32_t> TargetsInFile(const Dataset& data);

// SHA-256 in lower-case hexadecimal over T and the number of training examples (64-bit each), then
// tokens, lengths and TargetsInFile (32-bit each), in this order, all little-endian.
std::string DatasetSha256(const Dataset& data);

}  // namespace pelab::trainer
