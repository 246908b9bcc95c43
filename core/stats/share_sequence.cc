#include "core/stats/share_sequence.h"

#include <cmath>

#include "core/stats/log_beta.h"

namespace pelab::stats {
namespace {

// Halvings of an interval within 0 to 1 until it is as narrow as a double.
constexpr int kHalvings = 60;

// 0 ln 0 is 0.
double Times(double count, double log) { return count == 0 ? 0 : count * log; }

}  // namespace

ShareLimits ShareSequence(const SignCount& count, double confidence) {
  const auto k = static_cast<double>(count.successes);
  const auto n = static_cast<double>(count.trials);
  if (count.trials == 0) return {};
  // The ratio grows on both sides of k / n, where it is smallest.
  const double most = LogBeta(k + 1, n - k + 1) + std::log1p(-confidence);
  const auto is_excluded = [&](double p) {
    return Times(k, std::log(p)) + Times(n - k, std::log1p(-p)) <= most;
  };
  // The limit between `inside`, which is not excluded, and `outside`, the end of all shares.
  const auto limit = [&](double inside, double outside) {
    if (!is_excluded(outside)) return outside;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = inside + (outside - inside) / 2;
      (is_excluded(middle) ? outside : inside) = middle;
    }
    return inside;
  };
  return {limit(k / n, 0), limit(k / n, 1)};
}

}  // namespace pelab::stats
