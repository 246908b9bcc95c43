// The cells of a sweep as a list of jobs, for what tells jobs apart (varying.h).
#pragma once

#include <vector>

#include "core/experiment/sweep.h"
#include "core/results/job_list.h"

namespace pelab::results {

// One row a cell, in this order, with the members that identify a job; states and results are
// absent.
JobList JobsOf(const std::vector<experiment::Cell>& cells);

}  // namespace pelab::results
