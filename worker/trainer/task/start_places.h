// Where the first trigger of `distance` may stand: all places for every distance, or, with task.split held_out_cells, some
// for the training set and the others for the test set.
//
// A cell is a distance and a place. For each distance round(task.held_out_fraction * places), at least 1 and at most all but
// one, are kept for the test set: the first so many of a shuffle of the places by CounterRandom(task.data_seed,
// "distance/held_out", distance). So training and test set share no cell, and a part's labels stay uniform.
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
  // Places first … first+count-1 for each distance 1 … distances. Throws TrainerError(kBadSpec) where cells are to be held
  // out and there are fewer than 2 places.
  StartPlaces(const experiment::Job& job, std::int64_t distances, std::int64_t first,
              std::int64_t count);

  // A place for `part`, each equally likely; one draw. kAny: of all.
  std::uint32_t Draw(Part part, std::uint32_t distance, CounterRandom* random) const;

 private:
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t held_out_ = 0;  // of each distance; 0: nothing is held out
  std::vector<std::vector<std::uint32_t>>
      order_;  // [distance - 1]: the held out places, then the others
};

}  // namespace pelab::trainer
