// Tables and pictures of stored results, as text. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/terminal/plot.h"
#include "core/results/cells.h"
#include "core/results/curves.h"

namespace pelab::client {

// Seeds collapsed: mean, 95 % interval, n. A cell that lacks seeds is marked, and a line below says
// what that means.
std::string CellTableText(const results::CellTable& table, const render::Style& style);

// A series a cell that has a curve.
std::vector<render::Series> CurveSeries(const results::CellTable& cells,
                                        const std::vector<results::MeanCurve>& curves);

}  // namespace pelab::client
