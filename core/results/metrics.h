// Metrics of jobs. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "core/results/variants.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

struct Metric {
  enum class Source {
    kJob,       // a number of the job's row
    kEpochs,    // from its curve: the first epoch, from 0, with at least `accuracy` on the test set
    kDeposit,   // an index of v_deposits, over all layers together
    kAnalysis,  // from the result of its analysis `analysis`
  };
  std::string name = "test_accuracy";  // as requested: "epochs_to(0.9)"
  Source source = Source::kJob;
  double accuracy = 0;  // for kEpochs
  // For kAnalysis: "split_accuracy", "layer_ablation" or "cumulative_ablation".
  std::string_view analysis = {};
  std::string split;        // of split_accuracy(split)
  std::int64_t number = 0;  // of layer_drop(layer) and greedy_accuracy(heads)
};

// "test_accuracy", "epochs_to(x)", "gini", …: the names that ParseMetric accepts.
const std::vector<std::string>& Metrics();

// INVALID_ARGUMENT for an unknown name; the message lists the known ones.
absl::StatusOr<Metric> ParseMetric(const std::string& name);

// Values by job number; a job without a value is absent.
using MetricValues = std::unordered_map<std::int64_t, double>;

// The value of a metric of the job's row; nullopt if it is absent.
std::optional<double> MetricOf(const v1::JobRow& row, const Metric& metric);

// Whether the metric is a fraction from 0 to 1: an accuracy, the Gini coefficient, the top share.
bool IsShare(const Metric& metric);

// The epochs, counted from 0 as in curves.
MetricValues EpochsValues(const std::vector<v1::EpochsToRow>& rows);

// The values of the rows over all layers. INVALID_ARGUMENT if the jobs have head ablations of
// several kinds, so that one must be chosen; the message lists the kinds.
absl::StatusOr<MetricValues> DepositValues(const std::vector<v1::DepositRow>& rows,
                                           const Metric& metric);

// The accuracies on the metric's split, from rows of the analysis split_accuracy (split_scores.h).
// INVALID_ARGUMENT if there are rows and none has the split; the message lists their splits.
absl::StatusOr<MetricValues> SplitValues(const std::vector<v1::AnalysisRow>& rows,
                                         const Metric& metric);

}  // namespace pelab::results
