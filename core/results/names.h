// The names of states, for people and as in the public views. Pure functions: thread-safe.
#pragma once

#include <string>

#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::results {

std::string StateName(v1::JobState state);  // "succeeded"
std::string StateName(v1::SweepState state);
std::string OutcomeName(v1::AttemptOutcome outcome);  // "open" while it runs

}  // namespace pelab::results
