// What tells two jobs apart: spec, environment, result. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/terminal/style.h"
#include "core/render/json.h"
#include "pelab/v1/results.pb.h"

namespace pelab::client {

// One side: a job, its whole spec, and of its attempts the one that trained it (or the last one).
struct DiffSide {
  v1::JobRow job;
  std::string spec_json;
  std::optional<v1::AttemptRow> attempt;
  std::vector<v1::CurveRow> curve;  // by epoch
};

// {"job_a", "job_b", "same_key", "spec": [{"field", "a", "b"}…], "environment": […], "result": […],
// "curves": {"epochs_a", "epochs_b", "first_difference"}}: only what differs, null where one side
// has no such field. `first_difference`: the first epoch whose counts or losses are not equal bit
// for bit; null where all that both have are.
render::Json DifferenceOf(const DiffSide& a, const DiffSide& b);

// The same as tables.
std::string DifferenceText(const render::Json& difference, const render::Style& style);

}  // namespace pelab::client
