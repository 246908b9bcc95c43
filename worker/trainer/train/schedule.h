// The learning rate of every step: linear warm-up from 0, then cosine to 0 or constant. No LibTorch.
#pragma once

#include <cstdint>

#include "core/experiment/job.h"

namespace pelab::trainer {

// Pure; thread-safe. Steps count from 0 over the whole training; as with PyTorch's LambdaLR the factor of step s is that
// of s itself, so that with a warm-up the first step's rate is 0.
//
//   s < W:  lr * s / W                                     W = floor(warmup_fraction * S)
//   else:   lr * (1 + cos(pi (s - W) / (S - W))) / 2       S = all steps
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
