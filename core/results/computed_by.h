// What computed the results of jobs, in words: devices and versions that are mixed within a sweep
// are a difference between its jobs like any other. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/results/job_list.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

// "all 24: cpu, LibTorch 1.13.0", or the most frequent environment and then the jobs of the others:
// "22 of 24: cpu, LibTorch 1.13.0, 4 threads; jobs 3, 7: cpu, LibTorch 1.13.0, 2 threads". Threads,
// kernels and pelab's version are named where they differ. Of jobs that have an epoch, by the last
// attempt that said what it runs on; empty where none has.
std::string ComputedByText(const JobList& jobs, const std::vector<v1::AttemptRow>& attempts);

}  // namespace pelab::results
