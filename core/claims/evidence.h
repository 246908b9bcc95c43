// Weighs the evidence that the seeds of a claim give. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/claims/binding.h"
#include "core/claims/outcomes.h"
#include "core/stats/e_value.h"
#include "core/stats/median_sequence.h"

namespace pelab::claims {

// One seed for which every cell of the claim is complete.
struct SeedEvidence {
  std::int64_t seed = 0;
  bool eligible = true;
  // One for each of BoundClaim::statistics; NaN if it is undefined.
  std::vector<double> values;
};

// The e-values that decide about a claim.
struct EValues {
  std::int64_t seeds = 0;     // the number of Evidence::seeds
  std::int64_t eligible = 0;  // how many of them are eligible; only these decide
  // The logarithms of the e-values of "holds" (the smallest of its sides) and of "fails" (the mean
  // of its sides).
  double log_holds = 0;
  double log_fails = 0;
  friend bool operator==(const EValues&, const EValues&) = default;
};

struct SideEvidence {
  Side side;
  stats::SignCount count;
  double log_e = 0;
};

// The complete seeds in the order of their numbers, up to the first seed that is not complete.
// `seeds` also has the seeds that are not eligible; the sign counts leave them out. A later seed
// waits, because the order of completion may depend on the outcome.
struct Evidence {
  std::vector<SeedEvidence> seeds;
  std::vector<SideEvidence> holds;  // as BoundClaim::holds
  std::vector<SideEvidence> fails;
  EValues e;
  // The slot time of all cells of the claim. A cell that several claims share counts for each of
  // them, so the sum over the claims can exceed the slot time of the sheet.
  double slot_seconds = 0;
};

std::vector<EValues> EValuesOf(std::span<const Evidence> claims);

// The positions of the cells of all the claim's statistics, each once, ascending.
std::vector<std::size_t> CellsOf(const BoundClaim& claim);

// Weighs the seeds first_seed … end_seed - 1, without pilot seeds. A seed is complete when its
// jobs are, and the analyses that the claim's metrics need.
Evidence Weigh(const BoundSheet& sheet, const BoundClaim& claim, const Outcomes& outcomes,
               std::int64_t first_seed, std::int64_t end_seed);

// The size of one statistic of a claim, which is shown beside the verdict.
struct Estimate {
  std::int64_t n = 0;  // eligible seeds with a finite value
  std::optional<double> mean;
  std::optional<double> t_half_width;  // 95 %, of a fixed n
  stats::MedianLimits median;          // 95 % at any time
};
Estimate EstimateOf(const Evidence& evidence, std::size_t statistic);

}  // namespace pelab::claims
