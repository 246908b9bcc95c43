// One condition on a job -> SQL over v_jobs (as `j`) with bound parameters. Internal to core/db.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/db/read/expression.h"

namespace pelab::db {

enum class Operator {
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kMatches,     // a pattern with * ? [a-z], of texts
  kMatchesNot,  // the opposite
  kIn,          // one of Condition::values
};

struct Condition {
  std::string field;
  std::optional<double> argument;  // 0.9 of `epochs_to(0.9)`
  Operator op = Operator::kEqual;
  std::string value;
  std::vector<std::string> values;  // of kIn; at least one
};

// A field is a column of v_jobs, a field of the canonical spec, `generalisation_gap` (train minus
// test accuracy), `epochs_to(x)` (the epoch, from 0, in which the test accuracy first was x or
// more) or an index of v_deposits over all layers, which holds where it does for one of the job's
// head ablations.
// What is not there is not equal to anything, and neither less nor greater.
// InvalidArgument: no such field, the operator does not fit its type, or the value cannot be read.
absl::StatusOr<Expression> Compile(const Condition& condition);

}  // namespace pelab::db
