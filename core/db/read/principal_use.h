// The use that the sweeps of a principal make of the service.
#pragma once

#include <cstdint>

namespace pelab::db {

struct PrincipalUse {
  double gpu_seconds = 0;    // of attempts that have ended
  std::int64_t queued = 0;   // jobs; one of two sweeps counts twice
  std::int64_t running = 0;  // assigned or running ones
};

}  // namespace pelab::db
