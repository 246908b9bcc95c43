// How far a sweep is, and how long it may still take. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/render/json.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::http {

// An attempt that trains.
struct Pace {
  int epochs = 0;      // that it has stored
  double seconds = 0;  // since it was started
};

// `seconds` is unset where nothing says how long; `based_on` says either way why, in words.
struct TimeLeft {
  std::optional<double> seconds;
  std::string based_on;
};

// All go on as those that have finished an epoch: others have only just begun. Analyses are not
// counted.
TimeLeft EstimateTimeLeft(std::uint64_t epochs_left, const std::vector<Pace>& running);

// {"jobs", "ended", "fraction", "epochs_left", "time_left_seconds", "based_on"}: `fraction` is of
// the epochs of the jobs that are still expected. `epochs_given_up` are those that failed and cancelled jobs lack.
render::Json ProgressJson(const v1::Sweep& sweep, std::uint64_t epochs_given_up,
                          const std::vector<Pace>& running);

}  // namespace pelab::http
