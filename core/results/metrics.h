// What jobs are measured by. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "core/results/variants.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

struct Metric {
  enum class Source {
    kJob,      // a number of the job's row
    kEpochs,   // of its curve: the epoch, from 0, in which the test accuracy first was `accuracy`
    kDeposit,  // an index of v_deposits, of all layers together
  };
  std::string name = "test_accuracy";  // as it was asked for: "epochs_to(0.9)"
  Source source = Source::kJob;
  double accuracy = 0;  // of kEpochs
};

// "test_accuracy", "epochs_to(x)", "gini", …: what ParseMetric reads.
const std::vector<std::string>& Metrics();

// INVALID_ARGUMENT with what is known.
absl::StatusOr<Metric> ParseMetric(const std::string& name);

// By job; a job without the value has none.
using MetricValues = std::unordered_map<std::int64_t, double>;

// Of a metric of the job's row; nullopt where it is not there.
std::optional<double> MetricOf(const v1::JobRow& row, const Metric& metric);

// Whether the metric is a share of 1: accuracies, the Gini coefficient, the top share.
bool IsShare(const Metric& metric);

// Epochs from 0, as curves have them.
MetricValues EpochsValues(const std::vector<v1::EpochsToRow>& rows);

// Of rows over all layers. INVALID_ARGUMENT, with the kinds that there are, where jobs have head
// ablations of several: which is meant has to be chosen.
absl::StatusOr<MetricValues> DepositValues(const std::vector<v1::DepositRow>& rows,
                                           const Metric& metric);

}  // namespace pelab::results
