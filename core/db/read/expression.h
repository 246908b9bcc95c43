// Boolean SQL with bound parameters, and how it is put together so that SQLite's parser takes a
// condition of any shape: its stack holds a hundred symbols. Pure functions: thread-safe. Internal to
// core/db.
#pragma once

#include <string>
#include <vector>

#include "core/db/connection.h"

namespace pelab::db {

// A boolean SQL expression that is never NULL, with `?` for every bind, in order.
struct Expression {
  std::string sql;
  std::vector<Bind> binds;
  // How many symbols the parser has to keep before it comes to the innermost part, beyond what one
  // condition needs.
  int nesting = 0;
};

// Holds where one of `parts` does, or where all do; `parts` has at least one. An expression's place
// among `parts` is not kept: the one that nests deepest comes first, where it costs the parser least.
Expression AnyOf(std::vector<Expression> parts);
Expression AllOf(std::vector<Expression> parts);

// Of an expression in brackets, such as AnyOf and AllOf make of several parts.
Expression Not(Expression expression);

}  // namespace pelab::db
