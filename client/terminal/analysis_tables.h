// Stored analyses as tables and plots, averaged over seeds. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/terminal/style.h"
#include "core/results/cells.h"
#include "pelab/v1/results.pb.h"

namespace pelab::client {

// One table per variant, with one line per group: how many seeds have it stored, the number of
// examples, and the mean intact accuracy. Empty if nothing is stored.
std::string AnalysisTableText(const results::CellTable& cells,
                              const std::vector<v1::AnalysisRow>& rows, const render::Style& style);

// layer_ablation: one table per group and variant. For each layer: the accuracy drop in points, the
// drop in percent of the accuracy above chance, and the added loss in nats. The interval is about
// the mean over seeds; with a single seed, about the paired change over its examples. Skips rows of
// other analyses.
std::string LayerAblationText(const results::CellTable& cells,
                              const std::vector<v1::AnalysisRow>& rows, const render::Style& style);

// cumulative_ablation: one table per group and variant with the accuracy after each removal, in
// greedy and in random order, and a plot of both.
std::string CumulativeAblationText(const results::CellTable& cells,
                                   const std::vector<v1::AnalysisRow>& rows,
                                   const render::Style& style);

// split_accuracy: one table per variant, with one line per group and split: the mean accuracy and
// its interval over seeds, and the accuracy of guessing. Results that cannot be read are left out.
std::string SplitAccuracyText(const results::CellTable& cells,
                              const std::vector<v1::AnalysisRow>& rows, const render::Style& style);

}  // namespace pelab::client
