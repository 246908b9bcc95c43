// Stored analyses listed and drawn, seeds put together. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/terminal/style.h"
#include "core/results/cells.h"
#include "pelab/v1/results.pb.h"

namespace pelab::client {

// A table for each variant with a line a cell: for how many of the seeds it is stored, over how
// many examples, the mean of the intact accuracy. Empty where nothing is stored.
std::string AnalysisTableText(const results::CellTable& cells,
                              const std::vector<v1::AnalysisRow>& rows, const render::Style& style);

// layer_ablation: a table a cell and variant with the drop of accuracy, of accuracy over what is
// above chance, and the added loss of each layer. An interval is that of the mean over seeds, or of
// the paired change over the examples where there is one seed. Rows of other names are left out.
std::string LayerAblationText(const results::CellTable& cells,
                              const std::vector<v1::AnalysisRow>& rows, const render::Style& style);

// cumulative_ablation: a table a cell and variant with the accuracy after each removal, in greedy
// and in random order, and a plot of both.
std::string CumulativeAblationText(const results::CellTable& cells,
                                   const std::vector<v1::AnalysisRow>& rows,
                                   const render::Style& style);

}  // namespace pelab::client
