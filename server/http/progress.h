// How much of a sweep is done, and an estimate of the time left. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/render/json.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::http {

// The progress of an attempt in training.
struct Pace {
  int epochs = 0;      // epochs that it has stored
  double seconds = 0;  // since the attempt's start
};

// `seconds` is unset if there is no basis for an estimate. `based_on` explains the result in words.
struct TimeLeft {
  std::optional<double> seconds;
  std::string based_on;
};

// Assumes that all running jobs are as fast as the average of those that have finished an epoch;
// the others have only just begun. Time for analyses is not included.
TimeLeft EstimateTimeLeft(std::uint64_t epochs_left, const std::vector<Pace>& running);

// Returns {"jobs", "ended", "fraction", "epochs_left", "time_left_seconds", "based_on"}. `fraction`
// is the share of the sweep's epochs that are done, without the epochs that are given up.
// `epochs_given_up` are the epochs that failed and cancelled jobs lack.
render::Json ProgressJson(const v1::Sweep& sweep, std::uint64_t epochs_given_up,
                          const std::vector<Pace>& running);

}  // namespace pelab::http
