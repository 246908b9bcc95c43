// Helpers for resolved jobs, shared by the files of this folder. Private to core/experiment.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/experiment/job.h"
#include "core/experiment/violation.h"

namespace pelab::experiment {

// "model.d_model" -> "model" and "d_model".
inline std::pair<std::string_view, std::string_view> SplitName(std::string_view field) {
  const std::size_t dot = field.find('.');
  return {field.substr(0, dot), field.substr(dot + 1)};
}

// One thing that is wrong with a job, and the fields from which its place in a document follows.
struct Failure {
  Violation violation;  // without a place
  // The deciding fields: first the one that the violation names, then the others.
  std::vector<std::string_view> fields;
};
// CheckJob, with the fields behind each violation.
std::vector<Failure> FindFailures(const Job& job);

}  // namespace pelab::experiment
