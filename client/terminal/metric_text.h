// Number formats for metrics. Pure functions: thread-safe.
#pragma once

#include <string>

#include "core/results/metrics.h"
#include "core/stats/seeds.h"

namespace pelab::client {

int DecimalsOf(const results::Metric& metric);

// "±0.0123" if the interval is symmetric around the mean, else "0.8811..0.9002"; "-" if there is
// none.
std::string IntervalText(const stats::SeedSummary& summary, int decimals);

}  // namespace pelab::client
