// Claim sheets whose truth is known, settled by the rounds of core/claims: how often are decided
// claims wrong? Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace pelab::testing_support {

// A sheet has 40 claims "cell i is above cell 0". All share cell 0, so that their observations
// depend on one another. For 20 of them both cells have the same distribution: P(D > 0) = 1/2, and
// each decision is false. For the others, cell i lies above by 1 to 3 standard deviations.
inline constexpr int kSimulatedClaims = 40;
inline constexpr int kTrueNulls = 20;

struct FalseDiscoveries {
  // The share of false claims among the decided ones, at the look where it is largest.
  double at_worst = 0;
  double at_end = 0;
  int decided = 0;  // at the end
};
struct SimulatedSheet {
  FalseDiscoveries settled;  // by e-values and e-BH with a rate of 0.05
  FalseDiscoveries naive;    // by 95 % t intervals of the mean, at each look
};
// A sheet of e-values is looked at after each of its rounds. They have 1, 1, 2, 4, 8 and then more
// seeds, and leave out claims that are decided or given up. The naive rule looks after 4, 8, 16, 32
// and 40 seeds of all claims. A claim that it has decided stays decided.
SimulatedSheet SimulateSheet(std::uint64_t seed);

// The seeds that a claim alone on its sheet needs until it is decided, if its probability
// P(D > 0) is `success`; `most` + 1 if it is not decided by then. Looked at after every seed.
int SeedsUntilDecided(double success, int most, std::uint64_t seed);

double Median(std::vector<int> values);

}  // namespace pelab::testing_support
