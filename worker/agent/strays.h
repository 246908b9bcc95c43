// Finds and kills processes that a trainer has started and left behind. They may still hold GPU
// memory that the next job needs.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace pelab::agent {

// The environment variable that marks a trainer and every process that it starts.
inline constexpr char kTrainerIdVariable[] = "PELAB_TRAINER_ID";
// A value of it that no other trainer has, "WORKER_ID:UUID".
std::string MakeTrainerId(const std::string& worker_id);

// How long to wait for the end of processes that were killed.
inline constexpr absl::Duration kStraysPatience = absl::Seconds(2);

// From now on, processes whose parents have ended become children of this process, so that they can
// be found. Call it once, before the first trainer starts.
absl::Status AdoptOrphans();

// Kills the descendants of this process that have `trainer_id` in their environment, including
// those that they start meanwhile. Waits at most `patience` for their end. Returns how many it
// killed. Also reaps descendants that have ended, of any trainer. Thread-safe.
std::size_t KillStrays(const std::string& trainer_id, absl::Duration patience);

// The same for all processes of this host that trainers of this worker have left behind, with
// any parent. Call it while this worker runs no trainer: an earlier daemon may have been
// killed before its trainers ended.
std::size_t KillStraysOfWorker(const std::string& worker_id, absl::Duration patience);

}  // namespace pelab::agent
