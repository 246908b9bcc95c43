#include "worker/trainer/train/schedule.h"

#include <algorithm>
#include <cmath>

namespace pelab::trainer {

Schedule::Schedule(const experiment::Job& job, std::int64_t steps)
    : rate_(job.Real("train.lr")),
      steps_(steps),
      warmup_(static_cast<std::int64_t>(job.Real("train.warmup_fraction") *
                                        static_cast<double>(steps))),
      cosine_(job.Choice("train.schedule") == "cosine") {}

double Schedule::RateAt(std::int64_t step) const {
  if (step < warmup_) return rate_ * static_cast<double>(step) / static_cast<double>(warmup_);
  if (!cosine_) return rate_;
  const double progress = static_cast<double>(step - warmup_) /
                          static_cast<double>(std::max<std::int64_t>(1, steps_ - warmup_));
  return rate_ * 0.5 * (1 + std::cos(M_PI * progress));
}

}  // namespace pelab::trainer
