// Compiles one condition on a job to SQL over v_jobs (as `j`) with bound parameters. Internal to
// core/db.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/db/read/expression.h"

namespace pelab::db {

// Bytes of the pattern of ~ and !~. SQLite refuses patterns of more than 50,000.
inline constexpr std::size_t kMaxPatternBytes = 1000;

enum class Operator {
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kMatches,     // a text matches a pattern with * ? [a-z]
  kMatchesNot,  // the opposite
  kIn,          // one of Condition::values
};

struct Condition {
  std::string field;
  std::optional<double> argument;  // the 0.9 in `epochs_to(0.9)`
  Operator op = Operator::kEqual;
  std::string value;
  std::vector<std::string> values;  // for kIn; at least one
};

// A field is a column of v_jobs, a field of the canonical spec, or one of these:
// - `generalisation_gap`: train_eval_accuracy minus test_accuracy;
// - `epochs_to(x)`: the first epoch, from 0, in which the test accuracy was x or more;
// - an index of v_deposits over all layers; the condition holds if it holds for one of the job's
//   head ablations.
// A missing value satisfies != and no other comparison.
// INVALID_ARGUMENT if there is no such field, if the operator does not fit the field's type, or if
// the value cannot be read or is too long a pattern.
absl::StatusOr<Expression> Compile(const Condition& condition);

}  // namespace pelab::db
