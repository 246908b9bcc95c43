// Seeds are replicates: what several seeds of one configuration say together. Pure functions:
// thread-safe.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace pelab::stats {

// NaN for no values. Compensated summation (Neumaier).
double Mean(std::span<const double> values);

// Sample standard deviation, with n - 1 below; nullopt for fewer than two values.
std::optional<double> SampleSd(std::span<const double> values);

// Half the width of the two-sided interval of the mean by Student's t with n - 1 degrees of
// freedom: t((1 + confidence) / 2, n - 1) * sd / sqrt(n). nullopt for fewer than two values: one
// seed says nothing about spread.
std::optional<double> IntervalHalfWidth(std::span<const double> values, double confidence = 0.95);

// One seed's outcome.
struct SeedResult {
  enum class State {
    kDone,       // has its final value
    kMissing,    // not ended yet, or ended without this value
    kFailed,     // failed: will not come by itself
    kCancelled,  // people stopped it: will not come by itself either
    kCensored,   // ended before it got there: its value is above `value`
  };
  State state = State::kMissing;
  double value = 0;  // of kDone and kCensored
};

enum class IntervalKind {
  kStudentT,   // IntervalHalfWidth
  kBootstrap,  // BootstrapIntervals
};

struct SeedSummary {
  int n = 0;  // seeds that are done
  int missing = 0;
  int failed = 0;
  int cancelled = 0;
  // Beside the n. Where there is one, neither the mean nor what goes with it is known: that of the n
  // alone would be that of the seeds that did well.
  int censored = 0;
  std::optional<double> mean;        // over the n; nullopt for none
  std::optional<double> sd;          // from 2 on
  std::optional<double> half_width;  // of the interval by Student's t, from 2 on
  // The interval that was asked for, from 2 on.
  std::optional<double> low;
  std::optional<double> high;
  // The smallest value that at least half of the n and the censored have come to, a censored one
  // counting as larger than all (the median of Kaplan and Meier); nullopt for none, and where more
  // than half are censored. Then it is above `median_above`.
  std::optional<double> median;
  std::optional<double> median_above;

  // Anything less must not be shown as a result without saying so.
  bool complete() const { return n + censored > 0 && missing + failed + cancelled == 0; }
};

// The interval by Student's t.
SeedSummary Summarise(std::span<const SeedResult> seeds, double confidence = 0.95);

// One of each group.
std::vector<SeedSummary> SummariseAll(std::span<const std::vector<SeedResult>> groups,
                                      IntervalKind interval, double confidence = 0.95);

}  // namespace pelab::stats
