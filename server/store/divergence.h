// Marks trainings that diverged (core/experiment/chance.h). For use inside a transaction of the
// writer.
#pragma once

#include <cstdint>

#include "server/store/database.h"

namespace pelab::store {

// Sets whether the job diverged, from the stored losses of its last epoch.
void JudgeDivergence(Database& db, std::int64_t job_id);

}  // namespace pelab::store
