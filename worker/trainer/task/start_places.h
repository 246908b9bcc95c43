// The start places: positions where the first trigger of `distance` can be. Normally each distance
// can use all places. With task.split held_out_cells or held_out_starts, some places are for the
// training set and the others for the test set.
//
// round(task.held_out_fraction * places) places, at least 1 and at most all but one, are kept for
// the test set. They are the first places of a shuffle by CounterRandom(task.data_seed,
// "distance/held_out", stream). With held_out_cells the stream is the distance, so training and
// test set share no cell, which is a pair of a distance and a place. With held_out_starts all
// distances have the places of stream 0, so they share no place, and no place of the training set
// lacks a distance. The labels stay uniform in all parts.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/experiment/job.h"
#include "worker/trainer/task/task.h"

namespace pelab::trainer {

// Immutable.
class StartPlaces {
 public:
  StartPlaces() = default;
  // Allows the places first … first+count-1 for each distance 1 … distances. Throws
  // TrainerError(kBadSpec) if places are held out and there are fewer than 2.
  StartPlaces(const experiment::Job& job, std::int64_t distances, std::int64_t first,
              std::int64_t count);

  // Draws a place for `part`; all its places are equally likely. kAny draws from all places. Uses
  // one draw of `random`.
  std::uint32_t Draw(Part part, std::uint32_t distance, CounterRandom* random) const;

 private:
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t held_out_ = 0;  // held-out places of a distance; 0: none are held out
  // The held-out places, then the others: of each distance, [distance - 1], or of all.
  std::vector<std::vector<std::uint32_t>> order_;
};

}  // namespace pelab::trainer
