// Statistics of a matrix of head ablations: paired drops with their standard errors, and the
// indices that tell whether the work is deposited in one head of a layer. Pure functions:
// thread-safe.
//
// An entry is judged example by example against the intact model: `lost` examples were right and
// become wrong without the head; `gained` examples were wrong and become right. With n scored
// examples, the drop of accuracy is m = (lost - gained) / n, with the standard error of the paired
// difference sqrt(((lost + gained) / n - m^2) / n). A drop counts if m > 3 standard errors;
// otherwise the indices below treat it as 0.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace pelab::stats {

inline constexpr double kErrorsThatCount = 3;  // standard errors that a drop must exceed to count

struct PairedCounts {
  std::int64_t lost = 0;
  std::int64_t gained = 0;
};

struct PairedDrop {
  double drop = 0;            // m as measured, which may be negative; a fraction from -1 to 1
  double standard_error = 0;  // standard error of m
  bool counts = false;        // m > 3 standard errors
};

// Requires total > 0 and lost + gained <= total.
PairedDrop Drop(const PairedCounts& counts, std::int64_t total);

// Whether the intact accuracy A stands out from `chance`: A > chance, and A - chance is at least 5
// standard errors sqrt(A (1 - A) / total). A model that does not stand out has nothing to lose, so
// its indices have no meaning. False for total <= 0.
bool StandsOut(std::int64_t intact_correct, std::int64_t total, double chance);

struct AblationMatrix {
  int layers = 0;
  int heads = 0;
  // Row-major; nullopt if the entry does not exist.
  std::vector<std::optional<PairedCounts>> entries;
  std::int64_t total = 0;  // scored examples
  std::int64_t intact_correct = 0;
  double chance = 0;  // 1 / the number of scored classes
};

// The indices of one layer, or of all entries together. Let d be the drops that count (0 for the
// others) over the entries that exist, and p = d / sum(d):
//   max_drop         max(d)
//   top_share        max(p)
//   top_ratio        largest d over the second largest; null if the latter is 0 or does not exist
//   gini             of all entries' d: 0 if all are equal, (k - 1) / k if one of k is not 0
//   effective_heads  1 / sum(p^2): 1 if one entry is not 0, k if k entries are equal
//   top_layer, top_head  where the largest d is; the first of equals
// All indices are null if the intact accuracy does not stand out from chance (StandsOut), or if no
// drop counts.
struct DepositIndices {
  std::optional<int> layer;  // nullopt: all layers together
  std::optional<double> max_drop;
  std::optional<double> top_share;
  std::optional<double> top_ratio;
  std::optional<double> gini;
  std::optional<double> effective_heads;
  std::optional<int> top_layer;
  std::optional<int> top_head;

  // For a layer: whether one head holds its work, that is
  //   (max_drop >= 0.40 or max_drop / (A - chance) >= 0.5) and
  //   max_drop >= 3 max(second largest d, 3 standard errors of that entry).
  // Among entries whose drops do not count, the one with the largest m ranks first. False if the
  // intact accuracy stands out and no drop counts. Null if the intact accuracy does not stand out,
  // or if the layer has fewer than two entries, because the rule compares heads.
  std::optional<bool> deposit;

  // For all layers: the number of layers in which `deposit` is true; null if `deposit` is null in
  // each.
  std::optional<int> deposits;
};

// One element per layer in order, then one for all layers. `entries` must have layers * heads
// elements.
std::vector<DepositIndices> IndicesOf(const AblationMatrix& matrix);

}  // namespace pelab::stats
