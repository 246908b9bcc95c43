#include "core/claims/metric.h"

#include <algorithm>

#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/results/metrics.h"

namespace pelab::claims {

const std::vector<std::string>& KindNames() {
  static const auto& names =
      *new std::vector<std::string>{"above", "between", "near", "most", "contrast"};
  return names;
}

std::string NameOf(Kind kind) { return KindNames()[static_cast<std::size_t>(kind)]; }

const std::vector<std::string>& Properties() {
  static const auto& names = *new std::vector<std::string>{kDeposit, kNoDeposit, kStartsDeeper};
  return names;
}

absl::Status CheckMetric(Kind kind, const std::string& metric) {
  if (kind != Kind::kMost) return results::ParseMetric(metric).status();
  const auto& known = Properties();
  if (std::find(known.begin(), known.end(), metric) != known.end()) return absl::OkStatus();
  const std::string_view near = catalog::DidYouMean(metric, {known.begin(), known.end()});
  return absl::InvalidArgumentError(Concat("unknown property \"", metric, "\" of a seed; ",
                                           near.empty() ? "" : Concat("did you mean ", near, "? "),
                                           "known: ", Join(known, ", "),
                                           " (for a number use above or between)"));
}

bool IsFraction(const std::string& metric) {
  const auto parsed = results::ParseMetric(metric);
  return parsed.ok() && (results::IsShare(*parsed) || metric == "max_drop" ||
                         parsed->analysis == "layer_ablation");
}

std::vector<std::string> MetricsOf(const Claim& claim) {
  if (!claim.eligible) return {claim.metric};
  return {claim.metric, claim.eligible->metric};
}

std::string_view AnalysisOf(const std::string& metric) {
  const auto parsed = results::ParseMetric(metric);
  if (parsed.ok() && parsed->source == results::Metric::Source::kAnalysis) return parsed->analysis;
  return IsAboutAblation(metric) ? "head_ablation" : "";
}

bool IsAboutAblation(const std::string& metric) {
  const auto& properties = Properties();
  if (std::find(properties.begin(), properties.end(), metric) != properties.end()) return true;
  const auto parsed = results::ParseMetric(metric);
  return parsed.ok() && (parsed->source == results::Metric::Source::kDeposit ||
                         parsed->analysis.ends_with("_ablation"));
}

}  // namespace pelab::claims
