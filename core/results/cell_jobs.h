// Makes a list of jobs from the cells of a sweep. Varying (varying.h) can then find the settings in
// which the cells differ. Pure functions: thread-safe.
#pragma once

#include <vector>

#include "core/experiment/sweep.h"
#include "core/results/job_list.h"

namespace pelab::results {

// Makes one row for each cell, in the order of `cells`. A row has the labels, the seed and the spec
// of the cell's job, but no id, state or result.
JobList JobsOf(const std::vector<experiment::Cell>& cells);

}  // namespace pelab::results
