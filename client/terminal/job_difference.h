// The differences between two jobs: spec, environment and result. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/terminal/style.h"
#include "core/render/json.h"
#include "pelab/v1/results.pb.h"

namespace pelab::client {

// One side of the comparison: a job, its whole spec, and the attempt that trained it (or its last
// attempt).
struct DiffSide {
  v1::JobRow job;
  std::string spec_json;
  std::optional<v1::AttemptRow> attempt;
  std::vector<v1::CurveRow> curve;  // ordered by epoch
};

// {"job_a", "job_b", "same_key", "spec": [{"field", "a", "b"}…], "environment": […], "result": […],
// "curves": {"epochs_a", "epochs_b", "first_difference"}}. Lists only fields that differ; a side
// without the field is null. `first_difference` is the first epoch whose counts, losses or learning
// rates are not equal bit for bit; null if all epochs that both jobs have are equal.
render::Json DifferenceOf(const DiffSide& a, const DiffSide& b);

// The same differences as tables.
std::string DifferenceText(const render::Json& difference, const render::Style& style);

}  // namespace pelab::client
