// The facts of a job's spec about its results: a curve and a matrix must be those of the job's data
// and model. core/event/check.h has the rules that hold for every job. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pelab/v1/fleet.pb.h"

namespace pelab::event {

struct JobFacts {
  std::int64_t layers = 0;
  std::int64_t heads = 0;  // of a layer
  // Examples, or positions that have a target if the task's targets are by position.
  std::int64_t train_targets = 0;
  std::int64_t test_targets = 0;
  std::int64_t most_of_example = 1;  // the most targets that an example can have
  // Totals count scored targets. If some are not scored (task.scored_classes), only the trainer
  // knows how many are.
  bool every_target_scored = false;
};

// nullopt if `spec_json` is not a canonical spec of this version: nothing is known about that job.
std::optional<JobFacts> FactsOf(std::string_view spec_json);

// For messages that meet the rules of check.h. Empty if they agree with the job; otherwise which
// value does not, and what is allowed:
//   epoch 0: "test_total" is 4; allowed: 30000, as the job's test examples
// Events of other kinds agree with every job.
std::string WhatIsWrong(const v1::Event& event, const JobFacts& job);
std::string WhatIsWrong(const v1::Epoch& epoch, const JobFacts& job);
std::string WhatIsWrong(const v1::HeadAblation& ablation, const JobFacts& job);

}  // namespace pelab::event
