#include "client/command/metric_values.h"

#include "client/command/ablation_options.h"
#include "client/options/filter.h"
#include "core/base/status.h"
#include "core/base/strings.h"

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
  if (metric.source == Source::kSplit) {
    PELAB_ASSIGN_OR_RETURN(const auto rows, source.Analyses(filter, "split_accuracy"));
    if (rows.empty()) {
      return absl::NotFoundError(Concat(
          "metric ", metric.name,
          ": these jobs have no analysis split_accuracy yet; pelab analyze adds it to trained "
          "jobs (--analysis split_accuracy), and a sweep asks for it with analyses: "
          "[head_ablation, split_accuracy]"));
    }
    PELAB_ASSIGN_OR_RETURN(auto values, results::SplitValues(rows, metric));
    return values;
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
  const std::string flag = !choice.method.empty()    ? "--method"
                           : !choice.hygiene.empty() ? "--hygiene"
                           : !choice.split.empty()   ? "--data"
                           : !choice.target.empty()  ? "--target"
                                                     : "";
  if (flag.empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const results::Metric& metric : metrics) {
    if (metric.source == results::Metric::Source::kDeposit) return absl::OkStatus();
    names.push_back(metric.name);
  }
  return absl::InvalidArgumentError(Concat(flag, " is about head ablations; ", Join(names, ", "),
                                           names.size() == 1 ? " has" : " have",
                                           " none: leave it out, or give --metric an index "
                                           "such as gini"));
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
