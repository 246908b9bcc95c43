// The accuracy that no rule can exceed on a task. Pure functions: thread-safe.
#pragma once

#include <optional>

#include "core/experiment/job.h"

namespace pelab::experiment {

// Returns the expected accuracy of the best possible classifier (the Bayes classifier) on scored
// examples of the job's task, from 0 to 1. It is 1 for a task in which the tokens determine the
// label.
//
// In the task `distance`, two trigger words stand in a sequence, and the label is the gap between
// them. In its `published` definition a trigger may also occur as an ordinary word, so several gaps
// can be possible, and the classifier chooses the most probable one. Its mean probability is 1 for
// sequences in which no trigger recurs. For the others it is estimated from at most 10,000
// sequences, which are drawn alike in every call. The standard error is 0.0005 at the paper's size,
// and below 0.002 for sequences of up to 200 tokens. docs/formats.md has the rule;
// tests/golden/ceilings.py computes it by itself.
//
// Held-out places are ignored. nullopt for own data: their ceiling is not known.
std::optional<double> BestAccuracy(const Job& job);

}  // namespace pelab::experiment
