// Tables and pictures of stored results, as text. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/render/plot.h"
#include "client/report/cells.h"
#include "pelab/v1/results.pb.h"

namespace pelab::client {

// Seeds collapsed: mean, 95 % interval, n. A cell that lacks seeds is marked, and a line below says
// what that means.
std::string CellTableText(const CellTable& table, const render::Style& style);

// The columns of a curve row that can be plotted.
const std::vector<std::string>& CurveMetrics();

// A series a cell: the mean over its seeds, as far as every one of them that has begun has come.
// `metric` is one of CurveMetrics().
std::vector<render::Series> MeanCurves(const CellTable& cells,
                                       const std::vector<v1::CurveRow>& rows,
                                       const std::string& metric);

}  // namespace pelab::client
