// What a matrix of head ablations says: paired drops with their standard errors, and the indices
// that tell whether the work is deposited in one head of a layer. Pure functions: thread-safe.
//
// An entry is judged example by example against the intact model: `lost` examples were right and
// are wrong without the head, `gained` the other way round. With n scored examples the drop of
// accuracy is m = (lost - gained) / n with the standard error of the paired difference
// sqrt(((lost + gained) / n - m^2) / n). A drop counts where m > 3 standard errors; otherwise it is
// taken for 0, and so is every drop in the indices below.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace pelab::stats {

inline constexpr double kErrorsThatCount = 3;  // standard errors that a drop must exceed

struct PairedCounts {
  std::int64_t lost = 0;
  std::int64_t gained = 0;
};

struct PairedDrop {
  double drop = 0;            // m, as measured: may be negative; a fraction from -1 to 1
  double standard_error = 0;  // of m
  bool counts = false;        // m > 3 standard errors
};

// For total > 0 and lost + gained <= total.
PairedDrop Drop(const PairedCounts& counts, std::int64_t total);

// Whether the intact accuracy A stands out from `chance` at all: A > chance, and A - chance is at
// least 5 standard errors sqrt(A (1 - A) / total). What does not has nothing to lose, and no index
// of it means anything. False for total <= 0.
bool StandsOut(std::int64_t intact_correct, std::int64_t total, double chance);

struct AblationMatrix {
  int layers = 0;
  int heads = 0;
  std::vector<std::optional<PairedCounts>> entries;  // row-major; nullopt where no entry exists
  std::int64_t total = 0;                            // scored examples
  std::int64_t intact_correct = 0;
  double chance = 0;  // 1 / the number of scored classes
};

// Indices of one layer, or of all entries together. With d the drops that count (0 for the others)
// over the entries that exist and p = d / sum(d):
//   max_drop         max(d)
//   top_share        max(p)
//   top_ratio        largest d over the second largest; null where that one is 0 or not there
//   gini             of all entries' d: 0 if alike, (k - 1) / k if one of k holds everything
//   effective_heads  1 / sum(p^2): 1 if one holds everything, k if k are alike
//   top_layer, top_head  where the largest d is; of equals the first
// All of them are null where the intact accuracy does not stand out from chance (StandsOut) and
// where no drop counts.
struct DepositIndices {
  std::optional<int> layer;  // nullopt: of all layers together
  std::optional<double> max_drop;
  std::optional<double> top_share;
  std::optional<double> top_ratio;
  std::optional<double> gini;
  std::optional<double> effective_heads;
  std::optional<int> top_layer;
  std::optional<int> top_head;

  // Of a layer: whether one head holds its work, that is
  //   (max_drop >= 0.40 or max_drop / (A - chance) >= 0.5) and
  //   max_drop >= 3 max(second largest d, 3 standard errors of that entry).
  // Of entries whose drops do not count the one with the largest m stands for the second. False
  // where the intact accuracy stands out and nothing drops; null where it does not stand out, and
  // where the layer has fewer than two entries, for the rule compares heads.
  std::optional<bool> deposit;

  // Of all layers: in how many `deposit` is true; null where it is null in each.
  std::optional<int> deposits;
};

// One for each layer in order, then the one of all layers. `entries` must hold layers * heads.
std::vector<DepositIndices> IndicesOf(const AblationMatrix& matrix);

}  // namespace pelab::stats
