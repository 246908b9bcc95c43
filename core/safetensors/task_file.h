// A file of data of one's own (docs/own-data.md): tensors `tokens`, `targets`, `split` and perhaps
// `lengths`, and text metadata. Everything in it is checked, because it may come from anybody.
//
// The trainer includes this header, so it needs no Abseil. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/experiment/own_task.h"

namespace pelab {

// The target of a position without one. No label has this value.
inline constexpr std::int32_t kNoTarget = std::numeric_limits<std::int32_t>::min();

struct TaskFile {
  experiment::OwnTask declared;               // without sha256 and bytes
  std::vector<std::int32_t> tokens;           // (N, T), row-major; 0 after an example's length
  std::vector<std::int32_t> lengths;          // (N)
  std::vector<std::int32_t> targets;          // (N), or (N, T) with kNoTarget where there is none
  std::vector<std::int32_t> split;            // (N): the index in declared.splits
  std::vector<std::string> class_names;       // empty, or one for each class
  std::map<std::int64_t, std::string> words;  // what token ids mean, if the file says so

  std::int64_t examples() const { return static_cast<std::int64_t>(lengths.size()); }
};

struct TaskFileResult {
  TaskFile file;
  std::string problem;  // for people: the first thing that is wrong; empty: `file` is valid
};
// `bytes` is the whole file, of at most experiment::kMaxTaskBytes.
TaskFileResult ParseTaskFile(std::string_view bytes);

}  // namespace pelab
