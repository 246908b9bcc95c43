// The best cells of a table. Pure functions: thread-safe.
#pragma once

#include <cstddef>

#include "core/results/cells.h"

namespace pelab::results {

// Losses, the generalisation gap, epochs to an accuracy and seconds; of all else more is better.
bool IsBetterWhenLow(const Metric& metric);

// What KeepTop left out.
struct LeftOut {
  std::size_t cells = 0;
  std::size_t without_mean = 0;  // of these
};

// Keeps the `count` best cells by the metric's mean, best first, of equal ones those that came
// first. A cell without a mean is no best one: it stays only where all cells do.
LeftOut KeepTop(CellTable& table, std::size_t count);

}  // namespace pelab::results
