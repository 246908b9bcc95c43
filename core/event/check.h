// The rules that the content of an event must meet, from any sender: a trainer, a worker or an
// import. job_facts.h has the rules that follow from the job's spec. The store itself checks
// whether an event fits its attempt (the due epoch, the job's length). Pure functions; thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::event {

// The largest values that are stored, so that no sum of them overflows. Jobs have no larger ones.
inline constexpr int kMostLayers = 64;                        // as model.layers
inline constexpr int kMostHeads = 128;                        // of a layer, as model.heads
inline constexpr std::int64_t kMostExamples = 2'000'000'000;  // of training, and of the test
inline constexpr std::int64_t kMostThreads = 1024;            // as pelab-trainer --threads
inline constexpr std::int64_t kMostMicroBatch = 1 << 30;      // as --micro-batch, in examples
inline constexpr std::int64_t kMostPacking = 64;              // jobs that one trainer runs
inline constexpr double kMostSeconds = 1e9;                   // about 32 years
inline constexpr double kMostJoules = 1e12;                   // 1 kW for as long

// Empty if no rule is broken; otherwise which value breaks a rule, and what is allowed:
//   epoch 4: "train_correct" is 11; allowed: an integer from 0 to 10
std::string WhatIsWrong(const v1::Event& event);
std::string WhatIsWrong(const v1::Epoch& epoch);
std::string WhatIsWrong(const v1::HeadAblation& ablation);
std::string WhatIsWrong(const v1::AnalysisResult& result);
std::string WhatIsWrong(const v1::Artifact& artifact);
std::string WhatIsWrong(const v1::Execution& execution);
// The same for a time. `of` and `name` are for the message:
//   end: "wall_seconds" is -5; allowed: a number from 0 to 1e+09
std::string WhatIsWrongWithSeconds(absl::string_view of, absl::string_view name, double seconds);
// The same for an energy.
std::string WhatIsWrongWithJoules(absl::string_view of, absl::string_view name, double joules);

// The settings of a trainer in the form of jobs.execution_json, with the names of v1::Execution.
// nullopt if `json` is malformed, or if a setting is missing or is not a 32-bit integer.
std::optional<v1::Execution> ExecutionFromJson(const std::string& json);

// The identity of an analysis of a job.
struct AnalysisId {
  std::string name;
  int version = 0;
  std::string parameters_json;
  auto operator<=>(const AnalysisId&) const = default;  // NOLINT(modernize-use-nullptr): its 0
};
AnalysisId IdOf(const v1::HeadAblation& ablation);
AnalysisId IdOf(const v1::AnalysisResult& result);
// For messages: head_ablation, version 2, parameters {"method":"zero"}. A text that is too long for
// a message is replaced by its length.
std::string ToText(const AnalysisId& analysis);

// Whether both losses of the epoch are finite. If not, the training itself has failed
// (ERROR_KIND_NON_FINITE_LOSS), not its trainer.
bool HasFiniteLosses(const v1::Epoch& epoch);

// Whether the entry `index` exists: an ablation may have fewer entries in a layer than the layer
// has heads. The arrays must have all their elements (WhatIsWrong checks this).
inline bool HasEntry(const v1::HeadAblation& ablation, int index) {
  return ablation.missing_size() == 0 || !ablation.missing(index);
}

}  // namespace pelab::event
