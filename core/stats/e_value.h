// E-values of the sign test: evidence that may be looked at after every observation. Pure
// functions: thread-safe.
//
// The null hypothesis is that an observation is a success with a probability of at most 1/2. For k
// successes in n observations, the e-value is the likelihood under a uniform mixture of all larger
// probabilities, divided by the likelihood at the null's edge, 1/2 (Ville 1939; Robbins, Annals of
// Mathematical Statistics 41, 1970):
//
//   e(k, n) = 2 ∫ from 1/2 to 1 of (2p)^k (2(1 - p))^(n - k) dp
//           = 2^(n + 1) B(k + 1, n - k + 1) (1 - I_1/2(k + 1, n - k + 1))
//
// Under the null, the e-value has an expectation of at most 1 at every stopping time. So the
// probability that it ever exceeds 1 / a is at most a. All functions take and return natural
// logarithms of e-values, which are finite up to 10^6 observations.
#pragma once

#include <cstdint>
#include <span>

namespace pelab::stats {

// Successes among observations. A tie, which supports neither a hypothesis nor its opposite, is no
// success for either.
struct SignCount {
  std::int64_t successes = 0;
  std::int64_t trials = 0;
  friend bool operator==(const SignCount&, const SignCount&) = default;
};

// ln e(k, n), for 0 <= k <= n; 0 for no observations. Grows with k.
double LogEValue(const SignCount& count);

// The logarithm of the mean of e-values, which is an e-value of the hypothesis that all their nulls
// hold. `logs` is not empty.
double LogMeanEValue(std::span<const double> logs);

// The probability that LogEValue reaches `log_threshold` at some number of observations up to
// `most_trials`, given those in `now`; 1 if the threshold is reached already. The calculation
// assumes a uniform prior, so the next observation is a success with probability (k + 1) / (n + 2).
// Time grows with the square of the number of observations to come, memory with the number.
double ChanceOfReaching(double log_threshold, const SignCount& now, std::int64_t most_trials);

}  // namespace pelab::stats
