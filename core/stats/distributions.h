// The distributions needed for intervals and tests. Pure functions: thread-safe.
#pragma once

#include <cstdint>

namespace pelab::stats {

// Student's t distribution with `degrees` > 0 degrees of freedom: P(T <= t). NaN outside the
// domain.
double StudentTCdf(double t, double degrees);

// The t with P(T <= t) = p, for 0 < p < 1; NaN outside the domain.
double StudentTQuantile(double p, double degrees);

// The binomial distribution: P(X <= successes) of `trials` that each succeed with probability
// `share`. NaN outside the domain.
double BinomialCdf(std::int64_t successes, std::int64_t trials, double share);

}  // namespace pelab::stats
