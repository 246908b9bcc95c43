// Describes the devices and versions that computed the results of jobs. If the jobs of a sweep ran
// on different devices or versions, this is a difference between the jobs like any other. Pure
// functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/results/job_list.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

// "all 24: cpu, LibTorch 1.13.0", or the most frequent environment and then the jobs of the others:
// "22 of 24: cpu, LibTorch 1.13.0, 4 threads; jobs 3, 7: cpu, LibTorch 1.13.0, 2 threads". Threads,
// kernels and pelab's version are named only if they differ. Considers jobs with at least one
// epoch, each job by its last attempt that reported an environment; empty if there is no such job.
std::string ComputedByText(const JobList& jobs, const std::vector<v1::AttemptRow>& attempts);

}  // namespace pelab::results
