// Processes that a trainer has started and left behind: they may hold the GPU's memory of the next
// job.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace pelab::agent {

// The variable that a trainer and everything that it starts has in its environment, with a value of
// that trainer's own.
inline constexpr char kTrainerIdVariable[] = "PELAB_TRAINER_ID";

// From now on processes whose parents have ended become children of this one, so that they can be
// found. Once, before the first trainer.
absl::Status AdoptOrphans();

// Kills the descendants of this process that have `trainer_id` in their environment, and what they
// start meanwhile; waits at most `patience` for their end. Answers how many there were. Descendants
// that have ended are reaped, whoever's they were. Thread-safe.
std::size_t KillStrays(const std::string& trainer_id, absl::Duration patience);

}  // namespace pelab::agent
