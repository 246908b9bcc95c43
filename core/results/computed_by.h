// Describes the devices and versions that computed the results of jobs. If they are mixed within a
// sweep, they are a difference between its jobs like any other. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/results/job_list.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

// "all 24: cpu, LibTorch 1.13.0", or the most frequent environment and then the jobs of the others:
// "22 of 24: cpu, LibTorch 1.13.0, 4 threads; jobs 3, 7: cpu, LibTorch 1.13.0, 2 threads". Threads,
// kernels and pelab's version are named only if they differ. Considers jobs with at least one
// epoch, each by the last attempt that reported its environment; empty if there is none.
std::string ComputedByText(const JobList& jobs, const std::vector<v1::AttemptRow>& attempts);

}  // namespace pelab::results
