// The values of metrics that are not in the jobs' rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/source/data_source.h"
#include "core/results/metrics.h"
#include "core/results/variants.h"

namespace pelab::client {

// "test_accuracy,epochs_to(0.9)" of --metric; INVALID_ARGUMENT.
absl::StatusOr<std::vector<results::Metric>> ParseMetrics(const std::string& text);

// nullopt where the metric is a number of the rows. INVALID_ARGUMENT as results::DepositValues.
absl::StatusOr<std::optional<results::MetricValues>> LoadValues(
    DataSource& source, const v1::JobFilter& filter, const results::Metric& metric,
    const results::AblationChoice& choice);

}  // namespace pelab::client
