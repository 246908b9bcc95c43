// The invariants of every pelab database, as queries. Part of check.h.
#pragma once

#include <vector>

namespace pelab::db {

struct Invariant {
  const char* name;  // the invariant in words: "epochs have no gap and none is there twice"
  const char* sql;   // every row is a problem, described by its first column
};

const std::vector<Invariant>& Invariants();

}  // namespace pelab::db
