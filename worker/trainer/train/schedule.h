// The learning rate of every step: linear warm-up from 0, then constant or a cosine down to 0. No
// LibTorch.
#pragma once

#include <cstdint>

#include "core/experiment/job.h"

namespace pelab::trainer {

// Immutable; thread-safe. Steps count from 0 over the whole training. As with PyTorch's LambdaLR,
// step s uses the factor of s itself; with a warm-up the first step therefore has rate 0.
//
//   s < W:  lr * s / W                                     W = floor(warmup_fraction * S)
//   else:   lr * (1 + cos(pi (s - W) / (S - W))) / 2       S = all steps
//             lr if the schedule is constant
class Schedule {
 public:
  Schedule(const experiment::Job& job, std::int64_t steps);
  double RateAt(std::int64_t step) const;

 private:
  double rate_;
  std::int64_t steps_;
  std::int64_t warmup_;
  bool cosine_;
};

}  // namespace pelab::trainer
