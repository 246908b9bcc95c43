// `pe=rope`, `train.lr>=0.0001` -> SQL over v_jobs (as `j`) with bound parameters. Internal to
// core/views.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/views/connection.h"
#include "pelab/v1/results.pb.h"

namespace pelab::views {

// A boolean SQL expression with `?` for every bind, in order.
struct Expression {
  std::string sql;
  std::vector<Bind> binds;
};

// InvalidArgument: the field is neither a column of v_jobs nor a field of the canonical spec, the
// operator does not fit its type, or the value cannot be read as it.
absl::StatusOr<Expression> Compile(const v1::Condition& condition);

}  // namespace pelab::views
