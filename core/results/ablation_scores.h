// Single numbers from the results of the analyses layer_ablation and cumulative_ablation. Pure
// functions: thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/results/metrics.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

// The metric's number from the result of one analysis. layer_drop: the accuracy of the intact model
// less the accuracy without the heads of that layer. greedy_accuracy: the accuracy when that many
// heads are gone. nullopt if the result has no such layer or step, or if the intact model does not
// stand out from chance (stats::StandsOut).
std::optional<double> AblationScoreOf(const v1::AnalysisRow& row, const Metric& metric);

// The numbers of the jobs, each from the analysis of the most examples; of equals, from the newest.
// INVALID_ARGUMENT if the rows are of several kinds, so that one must be chosen; the message lists
// the kinds.
absl::StatusOr<MetricValues> AblationScores(const std::vector<v1::AnalysisRow>& rows,
                                            const Metric& metric);

}  // namespace pelab::results
