#include "core/results/ablation_scores.h"

#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/render/json.h"
#include "core/results/variants.h"
#include "core/stats/deposit.h"

namespace pelab::results {
namespace {

using render::Json;

// The element of an array of counts; null if there is none.
Json ElementAt(const Json& counts, std::int64_t at) {
  const bool is_there =
      counts.is_array() && 0 <= at && at < static_cast<std::int64_t>(counts.size());
  return is_there ? counts[static_cast<std::size_t>(at)] : Json();
}

bool IsOfLayers(const Metric& metric) { return metric.analysis == "layer_ablation"; }

Json RightAfter(const Json& result, const Metric& metric) {
  return IsOfLayers(metric) ? ElementAt(result.at("correct"), metric.number)
                            : ElementAt(result.at("greedy").at("correct"), metric.number - 1);
}

std::optional<double> ScoreIn(const Json& result, const Metric& metric) {
  const auto total = IntegerOf<std::int64_t>(result.at("total"));
  // A worker made the result, so it is believed only as far as it is possible.
  const auto count = [&](const Json& of) {
    const auto read = IntegerOf<std::int64_t>(of);
    return read && total && 0 <= *read && *read <= *total ? read : std::nullopt;
  };
  const auto intact = count(result.at("intact_correct"));
  const auto right = count(RightAfter(result, metric));
  if (!intact || !right) return std::nullopt;
  if (!stats::StandsOut(*intact, *total, result.at("chance").get<double>())) return std::nullopt;
  const std::int64_t share = IsOfLayers(metric) ? *intact - *right : *right;
  return static_cast<double>(share) / static_cast<double>(*total);
}

std::string Describe(const AblationKind& kind) {
  return kind.data.empty() ? kind.method : Concat(kind.method, " ", kind.data);
}

}  // namespace

std::optional<double> AblationScoreOf(const v1::AnalysisRow& row, const Metric& metric) {
  try {
    return ScoreIn(ParseJson<Json>(row.result_json()), metric);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

absl::StatusOr<MetricValues> AblationScores(const std::vector<v1::AnalysisRow>& rows,
                                            const Metric& metric) {
  std::set<std::string> kinds;
  std::unordered_map<std::int64_t, std::tuple<std::int64_t, std::int64_t>> best;
  MetricValues values;
  for (const v1::AnalysisRow& row : rows) {
    kinds.insert(Describe(KindOf(row)));
    const std::tuple rank(row.total(), row.analysis_id());
    const auto [known, is_first] = best.try_emplace(row.job_id(), rank);
    if (!is_first && rank < known->second) continue;
    known->second = rank;
    values.erase(row.job_id());
    if (const auto value = AblationScoreOf(row, metric)) values[row.job_id()] = *value;
  }
  if (kinds.size() < 2) return values;
  return absl::InvalidArgumentError(Concat("metric ", metric.name,
                                           ": these jobs have analyses of several kinds (",
                                           Join(kinds, "; "), "); choose one by method or data"));
}

}  // namespace pelab::results
