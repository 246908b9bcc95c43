// Values in --where that no job has: a slip is likely if a condition meets no job.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/options/options.h"
#include "client/source/data_source.h"

namespace pelab::client {

// One sentence for each value in the condition that no selected job has. Selected are the jobs
// that meet the filter without its condition and states. "no job of the sweep has task = own:tyo;
// did you mean own:toy? there: own:toy, own:other". Empty without a condition. For a condition
// that no job meets: reads all jobs.
absl::StatusOr<std::vector<std::string>> UnknownValues(DataSource& source,
                                                       const v1::JobFilter& filter);

// NOT_FOUND with `what` and these sentences: for commands that need a job.
absl::Status NoJobMeets(DataSource& source, const v1::JobFilter& filter, const std::string& what);

// Writes these sentences as notes to standard error if there are no `jobs` that the condition of
// `flag` meets.
absl::Status NoteUnknownValues(const Context& context, DataSource& source,
                               const v1::JobFilter& filter, std::size_t jobs,
                               const char* flag = "--where");

}  // namespace pelab::client
