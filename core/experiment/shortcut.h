// The accuracy that rules reach without answering a task's question. Pure functions: thread-safe.
#pragma once

#include <string_view>

#include "core/experiment/job.h"

namespace pelab::experiment {

struct Shortcut {
  double accuracy = 0;    // a fraction of the scored examples
  std::string_view rule;  // "guessing", "the length alone", "the second trigger's place alone", …
};

// The best rule for the job's test set that looks at no more than the sequence's length or one
// place: a model that is no better has not shown that it does the task. Exact for the splits
// disjoint and random, and an upper bound where start places are held out, because a place then
// tells something about the distances, too. docs/formats.md has the rules, tests/golden/ceilings.py
// holds them against generated data.
Shortcut BestShortcut(const Job& job);

}  // namespace pelab::experiment
