// Values of metrics that the jobs' rows do not contain.
#pragma once

#include <future>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/source/data_source.h"
#include "core/results/metrics.h"
#include "core/results/variants.h"

namespace pelab::client {

// Parses --metric: "test_accuracy,epochs_to(0.9)". INVALID_ARGUMENT for unknown metrics.
absl::StatusOr<std::vector<results::Metric>> ParseMetrics(const std::string& text);

// Refuses the flags of AddChoice (ablation_options.h) if none of the metrics is an index of head
// ablations: INVALID_ARGUMENT.
absl::Status CheckChoice(const results::AblationChoice& choice,
                         const std::vector<results::Metric>& metrics);

// The values of each metric, as futures. nullopt: the jobs' rows already contain this metric.
// INVALID_ARGUMENT as in results::DepositValues.
using ValuesToCome = std::vector<std::future<absl::StatusOr<std::optional<results::MetricValues>>>>;

// Reads all metrics concurrently, while the caller reads the rows. `source` must outlive the
// returned futures.
ValuesToCome LoadTogether(DataSource& source, const v1::JobFilter& filter,
                          const std::vector<results::Metric>& metrics,
                          const results::AblationChoice& choice);

}  // namespace pelab::client
