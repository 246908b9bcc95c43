// The accuracies that rules reach on the jobs' tasks without doing them, to stand beside the jobs'
// accuracies. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>

#include "core/experiment/shortcut.h"
#include "core/results/job_list.h"

namespace pelab::results {

// nullopt if the job's spec cannot be read: it is of another version.
std::optional<experiment::Shortcut> ShortcutOf(const JobList& jobs, const v1::JobRow& row);

// "without doing the task: distance clean 25.2 % (the second trigger's place alone), …", each task,
// protocol and accuracy once, in the order of the jobs, and how many more there are. Empty without
// jobs, and for jobs of very many configurations.
std::string ShortcutsText(const JobList& jobs);

}  // namespace pelab::results
