// The values of metrics that are not in the jobs' rows.
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

// "test_accuracy,epochs_to(0.9)" of --metric; INVALID_ARGUMENT.
absl::StatusOr<std::vector<results::Metric>> ParseMetrics(const std::string& text);

// Of each metric, once it is there; nullopt where it is a number of the rows. INVALID_ARGUMENT as
// results::DepositValues.
using ValuesToCome = std::vector<std::future<absl::StatusOr<std::optional<results::MetricValues>>>>;

// Reads all of them at once, while the caller reads the rows. `source` must outlive what is answered.
ValuesToCome LoadTogether(DataSource& source, const v1::JobFilter& filter,
                          const std::vector<results::Metric>& metrics,
                          const results::AblationChoice& choice);

}  // namespace pelab::client
