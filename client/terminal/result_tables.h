// Tables and plots of stored results as text. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/terminal/plot.h"
#include "core/results/cells.h"
#include "core/results/curves.h"

namespace pelab::client {

// One line per group: mean, 95 % interval and n over its seeds. Groups with missing seeds are
// marked, and a line below explains the mark.
std::string CellTableText(const results::CellTable& table, const render::Style& style);

// One series for each group that has a curve.
std::vector<render::Series> CurveSeries(const results::CellTable& cells,
                                        const std::vector<results::MeanCurve>& curves);

}  // namespace pelab::client
