// The needs of an own encoding: values that a job must have in fields of the model, the task or the
// training. The needs are not in the canonical spec, because the file's hash
// stands for them.
//
// The trainer includes this header, so it needs no YAML and no Abseil. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/catalog/catalog.h"

namespace pelab::experiment {

inline constexpr std::size_t kMaxOwnNeeds = 32;
inline constexpr std::size_t kMaxNeededValues = 32;

struct OwnNeed {
  std::string field;                    // "model.heads"
  std::vector<catalog::Value> allowed;  // in the order of the declaration; empty: min to max
  double min = 0;
  double max = 0;

  bool Allows(const catalog::Value& value) const;
  std::string ToText() const;   // "causal", "4, 8 or 16", "1 to 16"
  std::string InWords() const;  // the same in a sentence: "from 1 to 16"
};

// Those of the needs that a job with these values does not meet. A field that the job lacks meets
// every need. The pointers are into `needs`.
std::vector<const OwnNeed*> UnmetNeeds(const std::vector<OwnNeed>& needs,
                                       const catalog::Values& job);

}  // namespace pelab::experiment
