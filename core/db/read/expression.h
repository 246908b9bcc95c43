// Boolean SQL with bound parameters, composed so that SQLite's parser accepts conditions of any
// shape although its stack holds only a hundred symbols. Pure functions: thread-safe. Internal to
// core/db.
#pragma once

#include <string>
#include <vector>

#include "core/db/connection.h"

namespace pelab::db {

// A boolean SQL expression that is never NULL, with one `?` for every bind, in order.
struct Expression {
  std::string sql;
  std::vector<Bind> binds;
  // The number of symbols that the parser keeps on its stack before it reaches the innermost part,
  // beyond those of a single condition.
  int nesting = 0;
};

// AnyOf holds if one of `parts` holds, AllOf if all of them hold; `parts` is not empty. The order
// of the parts is not kept: the part with the deepest nesting comes first, where it needs the least
// of the parser's stack.
Expression AnyOf(std::vector<Expression> parts);
Expression AllOf(std::vector<Expression> parts);

// The negation of a single condition in brackets, or of the result of AnyOf or AllOf.
Expression Not(Expression expression);

}  // namespace pelab::db
