// How figures of metrics are written. Pure functions: thread-safe.
#pragma once

#include <string>

#include "core/results/metrics.h"
#include "core/stats/seeds.h"

namespace pelab::client {

int DecimalsOf(const results::Metric& metric);

// "±0.0123" where it lies evenly around the mean, "0.8811..0.9002" where not; "-" for none.
std::string IntervalText(const stats::SeedSummary& summary, int decimals);

}  // namespace pelab::client
