#include "core/results/metrics.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "absl/strings/numbers.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/catalog/own.h"
#include "core/results/split_scores.h"

namespace pelab::results {
namespace {

constexpr std::string_view kEpochsTo = "epochs_to(";
constexpr std::string_view kSplitAccuracy = "split_accuracy(";
constexpr std::string_view kLayerDrop = "layer_drop(";
constexpr std::string_view kGreedyAccuracy = "greedy_accuracy(";

struct Index {
  std::string_view name;
  std::optional<double> (*of)(const v1::DepositRow& row);
};
constexpr Index kIndices[] = {
    {"max_drop",
     [](const v1::DepositRow& r) {
       return r.has_max_drop() ? std::optional(r.max_drop()) : std::nullopt;
     }},
    {"top_share",
     [](const v1::DepositRow& r) {
       return r.has_top_share() ? std::optional(r.top_share()) : std::nullopt;
     }},
    {"top_ratio",
     [](const v1::DepositRow& r) {
       return r.has_top_ratio() ? std::optional(r.top_ratio()) : std::nullopt;
     }},
    {"gini",
     [](const v1::DepositRow& r) { return r.has_gini() ? std::optional(r.gini()) : std::nullopt; }},
    {"effective_heads",
     [](const v1::DepositRow& r) {
       return r.has_effective_heads() ? std::optional(r.effective_heads()) : std::nullopt;
     }},
    {"deposits",
     [](const v1::DepositRow& r) {
       return r.has_deposits() ? std::optional(static_cast<double>(r.deposits())) : std::nullopt;
     }},
};

struct Figure {
  std::string_view name;
  std::optional<double> (*of)(const v1::JobRow& row);
};
constexpr Figure kFigures[] = {
    {"test_accuracy",
     [](const v1::JobRow& r) {
       return r.has_test_accuracy() ? std::optional(r.test_accuracy()) : std::nullopt;
     }},
    {"best_test_accuracy",
     [](const v1::JobRow& r) {
       return r.has_best_test_accuracy() ? std::optional(r.best_test_accuracy()) : std::nullopt;
     }},
    {"train_accuracy",
     [](const v1::JobRow& r) {
       return r.has_train_accuracy() ? std::optional(r.train_accuracy()) : std::nullopt;
     }},
    {"train_eval_accuracy",
     [](const v1::JobRow& r) {
       return r.has_train_eval_accuracy() ? std::optional(r.train_eval_accuracy()) : std::nullopt;
     }},
    {"generalisation_gap",
     [](const v1::JobRow& r) {
       return r.has_train_eval_accuracy() && r.has_test_accuracy()
                  ? std::optional(r.train_eval_accuracy() - r.test_accuracy())
                  : std::nullopt;
     }},
    {"wall_seconds",
     [](const v1::JobRow& r) {
       return r.has_wall_seconds() ? std::optional(r.wall_seconds()) : std::nullopt;
     }},
};

template <typename Named, std::size_t n>
const Named* Find(const Named (&all)[n], const std::string& name) {
  const auto found = std::find_if(std::begin(all), std::end(all),
                                  [&](const Named& one) { return one.name == name; });
  return found == std::end(all) ? nullptr : found;
}

// Returns the text between `before`, which ends with a bracket, and the closing bracket at the end.
std::optional<std::string> InBrackets(const std::string& name, std::string_view before) {
  if (!name.starts_with(before) || !name.ends_with(")")) return std::nullopt;
  return name.substr(before.size(), name.size() - before.size() - 1);
}

std::optional<Metric> ParseEpochsTo(const std::string& name) {
  const auto number = InBrackets(name, kEpochsTo);
  Metric metric{.name = name, .source = Metric::Source::kEpochs};
  if (!number || !absl::SimpleAtod(*number, &metric.accuracy)) return std::nullopt;
  if (!(metric.accuracy >= 0 && metric.accuracy <= 1)) return std::nullopt;
  return metric;
}

std::optional<Metric> ParseSplitAccuracy(const std::string& name) {
  const auto split = InBrackets(name, kSplitAccuracy);
  if (!split || !catalog::IsOwnName(*split)) return std::nullopt;
  return Metric{.name = name,
                .source = Metric::Source::kAnalysis,
                .analysis = "split_accuracy",
                .split = *split};
}

// A metric with a number in brackets, which is at least `least`.
std::optional<Metric> ParseNumbered(const std::string& name, std::string_view before,
                                    std::string_view analysis, std::int64_t least) {
  const auto text = InBrackets(name, before);
  Metric metric{.name = name, .source = Metric::Source::kAnalysis, .analysis = analysis};
  if (!text || !absl::SimpleAtoi(*text, &metric.number) || metric.number < least) {
    return std::nullopt;
  }
  return *text == Concat(metric.number) ? std::optional(metric) : std::nullopt;
}

// Without what is in brackets.
std::string_view StemOf(std::string_view name) { return name.substr(0, name.find('(')); }

// The known name that may be meant, whatever is in brackets; empty: none is near.
std::string_view NearMetric(std::string_view name) {
  std::vector<std::string_view> stems;
  for (const std::string& known : Metrics()) stems.push_back(StemOf(known));
  const std::string_view near = catalog::DidYouMean(StemOf(name), stems);
  const auto found = std::find(stems.begin(), stems.end(), near);
  if (near.empty() || found == stems.end()) return "";
  return Metrics()[static_cast<std::size_t>(found - stems.begin())];
}

}  // namespace

const std::vector<std::string>& Metrics() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> all;
    for (const Figure& figure : kFigures) all.emplace_back(figure.name);
    all.emplace_back("epochs_to(x)");
    all.emplace_back("split_accuracy(name)");
    all.emplace_back("layer_drop(layer)");
    all.emplace_back("greedy_accuracy(heads)");
    for (const Index& index : kIndices) all.emplace_back(index.name);
    return all;
  }());
  return names;
}

absl::StatusOr<Metric> ParseMetric(const std::string& name) {
  if (Find(kFigures, name) != nullptr) return Metric{.name = name};
  if (Find(kIndices, name) != nullptr) {
    return Metric{.name = name, .source = Metric::Source::kDeposit};
  }
  if (auto epochs = ParseEpochsTo(name)) return *epochs;
  if (auto split = ParseSplitAccuracy(name)) return *split;
  if (auto drop = ParseNumbered(name, kLayerDrop, "layer_ablation", 0)) return *drop;
  if (auto left = ParseNumbered(name, kGreedyAccuracy, "cumulative_ablation", 1)) return *left;
  const std::string_view near = NearMetric(name);
  return absl::InvalidArgumentError(Concat(
      "unknown metric \"", name, "\"; ", near.empty() ? "" : Concat("did you mean ", near, "? "),
      "known: ", Join(Metrics(), ", "),
      " (x: an accuracy from 0 to 1; name: a split of the data; layer: from 0; heads: how many "
      "are gone)"));
}

std::optional<double> MetricOf(const v1::JobRow& row, const Metric& metric) {
  const Figure* figure = Find(kFigures, metric.name);
  return figure == nullptr ? std::nullopt : figure->of(row);
}

bool IsShare(const Metric& metric) {
  if (metric.source == Metric::Source::kDeposit) {
    return metric.name == "gini" || metric.name == "top_share";
  }
  if (metric.source == Metric::Source::kAnalysis) return metric.analysis != "layer_ablation";
  return metric.source == Metric::Source::kJob && metric.name.ends_with("_accuracy");
}

MetricValues EpochsValues(const std::vector<v1::EpochsToRow>& rows) {
  MetricValues values;
  for (const v1::EpochsToRow& row : rows) values[row.job_id()] = row.epochs() - 1;
  return values;
}

absl::StatusOr<MetricValues> DepositValues(const std::vector<v1::DepositRow>& rows,
                                           const Metric& metric) {
  const Index* index = Find(kIndices, metric.name);
  MetricValues values;
  std::set<std::string> kinds;
  for (const v1::DepositRow& row : rows) {
    if (row.has_layer()) continue;
    kinds.insert(Concat(row.method(), " ", row.hygiene(), " ", row.split(), " ", row.target()));
    if (const auto value = index->of(row)) values[row.job_id()] = *value;
  }
  if (kinds.size() < 2) return values;
  return absl::InvalidArgumentError(
      Concat("metric ", metric.name, ": these jobs have head ablations of several kinds (",
             Join(kinds, "; "), "); choose one by method, hygiene, data or target"));
}

absl::StatusOr<MetricValues> SplitValues(const std::vector<v1::AnalysisRow>& rows,
                                         const Metric& metric) {
  const SplitScores scores = CollectSplitScores(rows);
  const std::vector<std::string>& names = scores.names;
  if (!names.empty() && std::find(names.begin(), names.end(), metric.split) == names.end()) {
    return absl::InvalidArgumentError(Concat("metric ", metric.name,
                                             ": the data of these jobs have"
                                             " no such split; their splits: ",
                                             Join(names, ", ")));
  }
  MetricValues values;
  for (const auto& [job, of_job] : scores.of_jobs) {
    if (const SplitScore* score = scores.Find(job, metric.split)) values[job] = score->accuracy();
  }
  return values;
}

}  // namespace pelab::results
