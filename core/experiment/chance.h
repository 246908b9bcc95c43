// What guessing gives, and which losses are worse. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/experiment/job.h"

namespace pelab::experiment {

// How many different labels the job's task can give.
std::int64_t LabelCount(const Job& job);

// The width of the model's read-out: LabelCount with task.label_space exact, else task.vocabulary.
std::int64_t ReadOutClasses(const Job& job);

// The loss of a model that gives every class of its read-out the same probability, in nats:
// ln(ReadOutClasses).
double ChanceLoss(const Job& job);

// A training has diverged if its final training loss and its final test loss both exceed this:
// 1.1 ChanceLoss. The tenth keeps those apart that learned nothing and lie a little above chance.
// (The test loss alone exceeds chance wherever a model is wrong and sure of it, as after
// overfitting; the training loss alone where it is that of a first epoch.)
double DivergenceLoss(const Job& job);

// The same of a configuration (configuration.h); nullopt where it is no canonical spec of this
// version.
std::optional<double> DivergenceLossOf(std::string_view spec_template);

}  // namespace pelab::experiment
