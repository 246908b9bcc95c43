// The loss of guessing, and the loss above which a training has diverged. Pure functions:
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/experiment/job.h"

namespace pelab::experiment {

// The number of different labels that the job's task can produce.
std::int64_t LabelCount(const Job& job);

// The width of the model's read-out: LabelCount if task.label_space is exact, otherwise
// task.vocabulary.
std::int64_t ReadOutClasses(const Job& job);

// The loss, in nats, of a model that gives every class of its read-out the same probability:
// ln(ReadOutClasses).
double ChanceLoss(const Job& job);

// The limit above which a training has diverged: both its final training loss and its final test
// loss exceed 1.1 ChanceLoss. The factor of 1.1 excludes models that learned nothing and lie
// slightly above chance. Each loss alone can exceed chance without divergence: the test loss of a
// model that is confidently wrong, as after overfitting, and the training loss of a first epoch.
double DivergenceLoss(const Job& job);

// DivergenceLoss of a configuration (configuration.h); nullopt if it is not a canonical spec of
// this version.
std::optional<double> DivergenceLossOf(std::string_view spec_template);

}  // namespace pelab::experiment
