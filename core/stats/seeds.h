// Summaries over seeds: several seeds of one configuration are replicates. Pure functions:
// thread-safe.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace pelab::stats {

// The mean by compensated summation (Neumaier); NaN for no values.
double Mean(std::span<const double> values);

// The sample standard deviation, with the divisor n - 1; nullopt for fewer than two values.
std::optional<double> SampleSd(std::span<const double> values);

// Half the width of the two-sided interval of the mean by Student's t with n - 1 degrees of
// freedom: t((1 + confidence) / 2, n - 1) * sd / sqrt(n). nullopt for fewer than two values, since
// one seed says nothing about spread.
std::optional<double> IntervalHalfWidth(std::span<const double> values, double confidence = 0.95);

// The outcome of one seed.
struct SeedResult {
  enum class State {
    kDone,       // has its final value
    kMissing,    // not ended yet, or ended without this value
    kFailed,     // failed; not retried automatically
    kCancelled,  // cancelled by a person; not resumed automatically
    kCensored,   // ended before it reached the target: its true value exceeds `value`
  };
  State state = State::kMissing;
  double value = 0;  // set for kDone and kCensored
};

enum class IntervalKind {
  kStudentT,   // IntervalHalfWidth
  kBootstrap,  // BootstrapIntervals
};

struct SeedSummary {
  int n = 0;  // number of seeds that are done
  int missing = 0;
  int failed = 0;
  int cancelled = 0;
  // Not included in n. If any seed is censored, the mean and its spread are unknown: a mean over
  // the n seeds would cover only those that did well.
  int censored = 0;
  std::optional<double> mean;        // over the n seeds; nullopt if n is 0
  std::optional<double> sd;          // from 2 values on
  std::optional<double> half_width;  // half the interval by Student's t; from 2 values on
  // The interval of the requested kind; from 2 values on.
  std::optional<double> low;
  std::optional<double> high;
  // The Kaplan-Meier median: the smallest v such that at least half of the done and censored seeds
  // have a value of v or less. Censored seeds count as larger than all others. nullopt if there are
  // no such seeds, or if more than half are censored. In the latter case the median exceeds
  // `median_above`.
  std::optional<double> median;
  std::optional<double> median_above;

  // Whether every seed has ended with a result. An incomplete summary must be shown as incomplete.
  bool complete() const { return n + censored > 0 && missing + failed + cancelled == 0; }
};

// A summary with the interval by Student's t.
SeedSummary Summarize(std::span<const SeedResult> seeds, double confidence = 0.95);

// One summary per group, with the requested kind of interval.
std::vector<SeedSummary> SummarizeAll(std::span<const std::vector<SeedResult>> groups,
                                      IntervalKind interval, double confidence = 0.95);

}  // namespace pelab::stats
