// Bootstrap intervals, which assume no distribution. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace pelab::stats {

struct Interval {
  double low = 0;
  double high = 0;
};

inline constexpr int kResamples = 10000;

// The percentile bootstrap of the mean (Efron and Tibshirani, An Introduction to the Bootstrap,
// 1993, chapter 13). From kResamples means of n values drawn with replacement, it takes the
// quantiles (1 - confidence) / 2 and (1 + confidence) / 2, interpolated linearly (type 7 of Hyndman
// and Fan, 1996). Draw i of resample r is the value whose number, in ascending order, is draw i of
// CounterRandom(0, "bootstrap", r).Below(n). The same values therefore always give the same
// interval, in any order. nullopt for fewer than two values. With few seeds the interval is too
// narrow: for five values, a nominal 95 % interval covers the true mean in about 83 % of cases.
//
// Returns one interval per sample. For many samples, the cost of each is little more than summing
// its draws, because the random numbers are made once for all of them.
std::vector<std::optional<Interval>> BootstrapIntervals(
    std::span<const std::vector<double>> samples, double confidence = 0.95);

}  // namespace pelab::stats
