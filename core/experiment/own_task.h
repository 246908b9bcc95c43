// A task whose examples come from a file: what the coordinator and the CLI know of the file without
// its tensors. core/safetensors/task_file.h reads the file. The trainer compares the two before it
// trains.
//
// The trainer includes this header, so it needs no YAML and no Abseil. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/catalog.h"

namespace pelab::experiment {

inline constexpr std::size_t kMaxTaskBytes = std::size_t{1} << 30;  // of the file
inline constexpr std::size_t kMaxOwnSplits = 32;
inline constexpr std::string_view kTrainSplit = "train";

struct OwnSplit {
  std::string name;
  std::int64_t examples = 0;
  std::int64_t targets = 0;  // as many as examples, unless targets are by position
  // The accuracy without looking at the tokens: what the file says, or that of always answering the
  // most frequent label of the training split.
  double chance = 0;
  // The same among the targets of other classes than class 0, for task.scored_classes nonzero.
  // Absent if it is equal, if the file says what chance is, and in older declarations.
  std::optional<double> chance_nonzero;
  std::int64_t repeats = 0;  // examples whose tokens are those of a training example
  std::int64_t longest = 0;  // tokens of its longest sequence, without padding; 0: not declared
};

struct OwnTask {
  std::string name;
  std::string sha256;  // of the file
  std::uint64_t bytes = 0;
  std::int64_t length = 0;  // T, padding included
  std::int64_t vocabulary = 0;
  std::int64_t classes = 0;
  std::int64_t first_label = 0;  // labels are first_label … first_label + classes - 1
  bool by_position = false;      // one target for each position, not one for a sequence
  bool padded = false;
  std::vector<OwnSplit> splits;  // the training split comes first; at least one more
  std::string help;

  const OwnSplit* Find(std::string_view split) const;
  // "test, long": all splits but the training split.
  std::string TestSplits() const;
};

struct OwnTaskResult {
  OwnTask task;
  std::string problem;  // for people: what is wrong; empty if and only if `task` is valid
};
OwnTaskResult ParseOwnTask(std::string_view json);
std::string ToJson(const OwnTask& task);

// The values of the job's fields task.* that follow from the file, if `test` is the test set.
catalog::Values FieldsOf(const OwnTask& task, const OwnSplit& test);

}  // namespace pelab::experiment
