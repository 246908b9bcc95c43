// Weighs the evidence that the seeds of a claim give. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/claims/binding.h"
#include "core/claims/outcomes.h"
#include "core/stats/e_value.h"
#include "core/stats/median_sequence.h"

namespace pelab::claims {

// One seed of which all the claim's cells are complete.
struct SeedEvidence {
  std::int64_t seed = 0;
  bool eligible = true;
  // One for each of BoundClaim::statistics; NaN if it is undefined.
  std::vector<double> values;
};

struct SideEvidence {
  Side side;
  stats::SignCount count;
  double log_e = 0;
};

// The evidence of the eligible seeds, taken in the order of their numbers up to the first one that
// is not complete. What completes first may depend on the outcome, so a later seed has to wait.
struct Evidence {
  std::vector<SeedEvidence> seeds;
  std::int64_t eligible = 0;
  std::vector<SideEvidence> holds;  // as BoundClaim::holds
  std::vector<SideEvidence> fails;
  // The logarithms of the e-values of "holds" (the smallest of its sides) and of "fails" (the mean
  // of its sides).
  double log_e_holds = 0;
  double log_e_fails = 0;
};

// The positions of the cells of all the claim's statistics, each once, ascending.
std::vector<std::size_t> CellsOf(const BoundClaim& claim);

// Weighs the seeds first_seed … end_seed - 1, without those for pilots. A claim about ablations
// waits for the seed's head ablation.
Evidence Weigh(const BoundSheet& sheet, const BoundClaim& claim, const Outcomes& outcomes,
               std::int64_t first_seed, std::int64_t end_seed);

// The size of one statistic of a claim, which is shown beside the verdict.
struct Estimate {
  std::int64_t n = 0;  // seeds with a finite value
  std::optional<double> mean;
  std::optional<double> t_half_width;  // 95 %, of a fixed n
  stats::MedianLimits median;          // 95 % at any time
};
Estimate EstimateOf(const Evidence& evidence, std::size_t statistic);

}  // namespace pelab::claims
