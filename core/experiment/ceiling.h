// The accuracy that no rule can exceed on a task. Pure functions: thread-safe.
#pragma once

#include <optional>

#include "core/experiment/job.h"

namespace pelab::experiment {

// The accuracy of Bayes' rule on the job's test examples, a fraction of those that are scored: 1
// where the tokens determine the label. In `published` distance the triggers are words of the
// segments, too, so that some sequences have several possible gaps. The value is then the mean of
// the largest posterior probability of a gap. Where no trigger recurs, that is 1; the mean over the
// other sequences is taken from up to 10,000 of them, always the same ones. The standard error is
// 0.0005 at the paper's size, and below 0.002 for sequences of up to 200 tokens. docs/formats.md
// has the rule, tests/golden/ceilings.py computes it by itself.
//
// Held-out places are left out of account. nullopt for own data: it is not known.
std::optional<double> BestAccuracy(const Job& job);

}  // namespace pelab::experiment
