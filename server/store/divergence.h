// Which trainings diverged (core/experiment/chance.h). Inside a transaction of the writer.
#pragma once

#include <cstdint>

#include "server/store/database.h"

namespace pelab::store {

// Sets whether the job diverged, from the losses of its last epoch of all, which are stored.
void JudgeDivergence(Database& db, std::int64_t job_id);

}  // namespace pelab::store
