// Tests of two methods on the same seeds or the same examples. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace pelab::stats {

// Student's paired t test of the hypothesis that the mean of `differences` is 0.
struct PairedTest {
  double t = 0;
  double p = 1;  // two-sided
};
// nullopt for fewer than two differences, or if all are equal: nothing is then known about their
// spread.
std::optional<PairedTest> PairedT(std::span<const double> differences);

// McNemar's exact test (McNemar 1947; the binomial form) of the hypothesis that two models are
// right equally often. `only_a` examples are right in model a alone, `only_b` examples in model b
// alone. The two-sided p is twice the smaller tail of Binomial(only_a + only_b, 1/2), at most 1. It
// is 1 if both numbers are 0.
double McNemarP(std::int64_t only_a, std::int64_t only_b);

}  // namespace pelab::stats
