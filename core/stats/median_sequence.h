// A confidence sequence of a median. Pure functions: thread-safe.
#pragma once

#include <span>

namespace pelab::stats {

// Limits between which the median lies; each is one of the values, or infinite.
struct MedianLimits {
  double low = 0;
  double high = 0;
};

// Limits of the median of the distribution of `values`, for replicates in the order in which they
// came. They are valid whenever one looks: the probability that they ever exclude the median is at
// most 1 - confidence. A number m is excluded if the mean of two e-values (e_value.h) is at least
// 1 / (1 - confidence): of the values above m and of those below m. Assumes nothing of the
// distribution. With 95 %, both limits are finite from 8 different values on. Values may be
// infinite, but not NaN.
MedianLimits MedianSequence(std::span<const double> values, double confidence = 0.95);

}  // namespace pelab::stats
