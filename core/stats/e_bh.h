// Decides among many hypotheses by their e-values. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace pelab::stats {

struct Rejections {
  std::vector<bool> rejected;  // one for each hypothesis
  std::size_t count = 0;
  // The logarithm of the e-value that every rejected hypothesis has at least; with none rejected,
  // of the e-value that one would need.
  double log_threshold = 0;
  // The same for one hypothesis more than are rejected.
  double log_next_threshold = 0;
};

// The e-BH procedure (Wang and Ramdas, Journal of the Royal Statistical Society B 84, 2022): of K
// null hypotheses, rejects the k with the largest e-values, for the largest k whose k-th e-value is
// at least K / (rate k). The false discovery rate is at most `rate`, whatever the dependence
// between the e-values. `log_e_values` are natural logarithms; 0 < rate < 1.
Rejections EBh(std::span<const double> log_e_values, double rate);

}  // namespace pelab::stats
