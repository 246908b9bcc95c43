// The accuracies that rules reach on the jobs' tasks without doing them, and those that no rule can
// exceed, to stand beside the jobs' accuracies. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>

#include "core/experiment/ceiling.h"
#include "core/experiment/shortcut.h"
#include "core/results/job_list.h"

namespace pelab::results {

// nullopt if the job's spec cannot be read: it is of another version.
struct Limits {
  experiment::Shortcut shortcut;
  std::optional<double> ceiling;  // experiment::BestAccuracy
};
std::optional<Limits> LimitsOf(const JobList& jobs, const v1::JobRow& row);

// "without doing the task: distance clean 25.2 % of at most 100 % (the second trigger's place
// alone), …", each task, protocol and accuracy once, in the order of the jobs, and how many more
// there are. Empty without jobs, and for jobs of very many configurations.
std::string ShortcutsText(const JobList& jobs);

}  // namespace pelab::results
