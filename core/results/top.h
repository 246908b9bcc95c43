// The best groups of a table. Pure functions: thread-safe.
#pragma once

#include <cstddef>

#include "core/results/cells.h"

namespace pelab::results {

// True for losses, the generalization gap, epochs to an accuracy and seconds; for all other
// metrics, higher is better.
bool IsBetterWhenLow(const Metric& metric);

// The number of groups that KeepTop removed.
struct LeftOut {
  std::size_t cells = 0;
  std::size_t without_mean = 0;  // how many of these have no mean
};

// Keeps the `count` best groups by the metric's mean, best first. Equal groups keep their order. A
// group without a mean is not among the best: it stays only if all groups stay.
LeftOut KeepTop(CellTable& table, std::size_t count);

}  // namespace pelab::results
