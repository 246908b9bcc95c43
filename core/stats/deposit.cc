#include "core/stats/deposit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace pelab::stats {
namespace {

// Standard errors by which the intact accuracy must exceed chance.
constexpr double kErrorsAboveChance = 5;

// An existing entry. Drops are compared as counts, which are exact; 0.3 / 0.1 is not 3 in binary
// fractions.
struct Entry {
  int layer = 0;
  int head = 0;
  std::int64_t net = 0;   // lost - gained, as measured
  std::int64_t drop = 0;  // `net` if it counts, otherwise 0
  double standard_error = 0;
};

// Sorts the largest drop first. Among drops that do not count, the larger measured change comes
// first; among equals, the one that comes first in the model.
bool Before(const Entry& a, const Entry& b) {
  if (a.drop != b.drop) return a.drop > b.drop;
  if (a.net != b.net) return a.net > b.net;
  return a.layer != b.layer ? a.layer < b.layer : a.head < b.head;
}

std::vector<Entry> EntriesOf(const AblationMatrix& matrix, int first_layer, int end_layer) {
  std::vector<Entry> entries;
  for (int layer = first_layer; layer < end_layer; ++layer) {
    for (int head = 0; head < matrix.heads; ++head) {
      const auto& counts = matrix.entries[static_cast<std::size_t>(layer) * matrix.heads + head];
      if (!counts) continue;
      const PairedDrop drop = Drop(*counts, matrix.total);
      const std::int64_t net = counts->lost - counts->gained;
      entries.push_back({layer, head, net, drop.counts ? net : 0, drop.standard_error});
    }
  }
  std::sort(entries.begin(), entries.end(), Before);
  return entries;
}

// For drops in descending order with a sum above 0: sum_i (2 i - k - 1) d_(i) / (k sum d), where i
// is the rank from 1 in ascending order.
double Gini(const std::vector<Entry>& entries, double sum) {
  const auto k = static_cast<double>(entries.size());
  double weighted = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double rank = k - static_cast<double>(i);
    weighted += (2 * rank - k - 1) * static_cast<double>(entries[i].drop);
  }
  return weighted / (k * sum);
}

void SetIndices(const std::vector<Entry>& entries, std::int64_t total, DepositIndices& indices) {
  if (entries.empty() || entries.front().drop == 0) return;
  const Entry& top = entries.front();
  const auto largest = static_cast<double>(top.drop);
  double sum = 0;
  double squares = 0;
  for (const Entry& entry : entries) {
    const auto drop = static_cast<double>(entry.drop);
    sum += drop;
    squares += drop * drop;
  }
  indices.max_drop = largest / static_cast<double>(total);
  indices.top_share = largest / sum;
  if (entries.size() > 1 && entries[1].drop > 0) {
    indices.top_ratio = largest / static_cast<double>(entries[1].drop);
  }
  indices.gini = Gini(entries, sum);
  indices.effective_heads = sum * sum / squares;
  indices.top_layer = top.layer;
  indices.top_head = top.head;
}

// The rule at DepositIndices::deposit, for at least two entries.
bool IsDeposit(const std::vector<Entry>& entries, const AblationMatrix& matrix) {
  const Entry& top = entries[0];
  const Entry& second = entries[1];
  if (top.drop == 0) return false;
  const auto total = static_cast<double>(matrix.total);
  const auto largest = static_cast<double>(top.drop);
  const double above_chance = static_cast<double>(matrix.intact_correct) - matrix.chance * total;
  const bool large = 5 * top.drop >= 2 * matrix.total || 2 * largest >= above_chance;
  const bool alone = top.drop >= 3 * second.drop &&
                     largest >= 3 * kErrorsThatCount * second.standard_error * total;
  return large && alone;
}

}  // namespace

PairedDrop Drop(const PairedCounts& counts, std::int64_t total) {
  const auto n = static_cast<double>(total);
  const double mean = static_cast<double>(counts.lost - counts.gained) / n;
  const double mean_square = static_cast<double>(counts.lost + counts.gained) / n;
  // If every example changes alike, the variance is 0, and rounding must not make it negative.
  const double variance = std::max(0.0, mean_square - mean * mean);
  const double standard_error = std::sqrt(variance / n);
  return {mean, standard_error, mean > kErrorsThatCount * standard_error};
}

bool StandsOut(std::int64_t intact_correct, std::int64_t total, double chance) {
  if (total <= 0) return false;
  const auto n = static_cast<double>(total);
  const double accuracy = static_cast<double>(intact_correct) / n;
  const double standard_error = std::sqrt(accuracy * (1 - accuracy) / n);
  return accuracy > chance && accuracy - chance >= kErrorsAboveChance * standard_error;
}

std::vector<DepositIndices> IndicesOf(const AblationMatrix& matrix) {
  const bool stands_out = StandsOut(matrix.intact_correct, matrix.total, matrix.chance);
  std::vector<DepositIndices> all(static_cast<std::size_t>(matrix.layers) + 1);
  DepositIndices& global = all.back();
  for (int layer = 0; layer < matrix.layers; ++layer) {
    DepositIndices& indices = all[static_cast<std::size_t>(layer)];
    indices.layer = layer;
    if (!stands_out) continue;
    const std::vector<Entry> entries = EntriesOf(matrix, layer, layer + 1);
    SetIndices(entries, matrix.total, indices);
    if (entries.size() < 2) continue;
    indices.deposit = IsDeposit(entries, matrix);
    global.deposits = global.deposits.value_or(0) + (*indices.deposit ? 1 : 0);
  }
  if (stands_out) SetIndices(EntriesOf(matrix, 0, matrix.layers), matrix.total, global);
  return all;
}

}  // namespace pelab::stats
