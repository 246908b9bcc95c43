#include "client/terminal/metric_text.h"

#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {

int DecimalsOf(const results::Metric& metric) {
  if (metric.name == "wall_seconds" || metric.source == results::Metric::Source::kEpochs) return 1;
  if (metric.name == "effective_heads" || metric.name == "top_ratio" || metric.name == "deposits") {
    return 2;
  }
  return 4;
}

std::string IntervalText(const stats::SeedSummary& summary, int decimals) {
  if (!summary.low || !summary.high) return "-";
  const bool even = summary.half_width && *summary.low == *summary.mean - *summary.half_width;
  // The interval of an accuracy is cut at 0 and 1, which makes it asymmetric.
  const bool whole = even && *summary.high == *summary.mean + *summary.half_width;
  if (whole) return Concat("±", render::Fixed(summary.half_width, decimals));
  return Concat(render::Fixed(summary.low, decimals), "..", render::Fixed(summary.high, decimals));
}

}  // namespace pelab::client
