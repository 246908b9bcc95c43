// What has to hold in every pelab database, as queries. Part of maintenance.h.
#pragma once

#include <vector>

namespace pelab::db {

struct Invariant {
  const char* name;  // what holds: "epochs have no gap and none is there twice"
  const char* sql;   // every row is a problem, said by its first column
};

const std::vector<Invariant>& Invariants();

}  // namespace pelab::db
