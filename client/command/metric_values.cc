#include "client/command/metric_values.h"

#include <algorithm>

#include "client/command/ablation_options.h"
#include "client/options/filter.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/results/ablation_scores.h"

namespace pelab::client {
namespace {

absl::StatusOr<std::optional<results::MetricValues>> LoadValues(
    DataSource& source, const v1::JobFilter& filter, const results::Metric& metric,
    const results::AblationChoice& choice) {
  using Source = results::Metric::Source;
  if (metric.source == Source::kEpochs) {
    PELAB_ASSIGN_OR_RETURN(const auto rows, source.EpochsTo(filter, metric.accuracy));
    return results::EpochsValues(rows);
  }
  if (metric.source == Source::kDeposit) {
    PELAB_ASSIGN_OR_RETURN(auto rows, source.Deposits(filter, /*whole_models=*/true));
    PELAB_RETURN_IF_ERROR(ChooseByFlags(choice, rows));
    PELAB_ASSIGN_OR_RETURN(auto values, results::DepositValues(rows, metric));
    return values;
  }
  if (metric.source == Source::kAnalysis) {
    const std::string name(metric.analysis);
    PELAB_ASSIGN_OR_RETURN(auto rows, source.Analyses(filter, name));
    if (rows.empty()) {
      return absl::NotFoundError(
          Concat("metric ", metric.name, ": these jobs have no analysis ", name,
                 " yet; pelab analyze adds it to trained jobs (--analysis ", name,
                 "), and a sweep asks for it with analyses: [head_ablation, ", name, "]"));
    }
    if (!metric.split.empty()) return results::SplitValues(rows, metric);
    PELAB_RETURN_IF_ERROR(ChooseByFlags(choice, rows));
    return results::AblationScores(rows, metric);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<results::Metric>> ParseMetrics(const std::string& text) {
  PELAB_ASSIGN_OR_RETURN(const auto names, ParseNames(text, "--metric"));
  std::vector<results::Metric> metrics;
  for (const std::string& name : names) {
    absl::StatusOr<results::Metric> metric = results::ParseMetric(name);
    if (!metric.ok()) return Annotate(metric.status(), "--metric");
    metrics.push_back(*metric);
  }
  return metrics;
}

absl::Status CheckChoice(const results::AblationChoice& choice,
                         const std::vector<results::Metric>& metrics) {
  struct Flag {
    const char* name;
    bool is_given;
    bool is_of_heads;  // only of head ablations
  };
  const Flag flags[] = {{"--method", !choice.method.empty(), false},
                        {"--hygiene", !choice.hygiene.empty(), true},
                        {"--data", !choice.split.empty(), false},
                        {"--target", !choice.target.empty(), true}};
  for (const Flag& flag : flags) {
    if (!flag.is_given || std::any_of(metrics.begin(), metrics.end(), [&](const auto& metric) {
          return metric.source == results::Metric::Source::kDeposit ||
                 (!flag.is_of_heads && metric.analysis.ends_with("_ablation"));
        })) {
      continue;
    }
    std::vector<std::string> names;
    names.reserve(metrics.size());
    for (const results::Metric& metric : metrics) names.push_back(metric.name);
    return absl::InvalidArgumentError(
        Concat(flag.name, flag.is_of_heads ? " is about head ablations; " : " is about ablations; ",
               Join(names, ", "), names.size() == 1 ? " has" : " have",
               " none: leave it out, or give --metric an index such as gini"));
  }
  return absl::OkStatus();
}

ValuesToCome LoadTogether(DataSource& source, const v1::JobFilter& filter,
                          const std::vector<results::Metric>& metrics,
                          const results::AblationChoice& choice) {
  ValuesToCome values;
  for (const results::Metric& metric : metrics) {
    const bool of_rows = metric.source == results::Metric::Source::kJob;
    values.push_back(std::async(
        of_rows ? std::launch::deferred : std::launch::async,
        [&source, filter, metric, choice] { return LoadValues(source, filter, metric, choice); }));
  }
  return values;
}

}  // namespace pelab::client
