#include "client/report/ablation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/views/text.h"

namespace pelab::client {
namespace {

struct MetricWords {
  results::AblationMetric metric;
  const char* title;
  double factor;  // from what is stored to what is shown
  int decimals;
  const char* missing;  // what it means that there is no value
};
constexpr MetricWords kMetrics[] = {
    {results::AblationMetric::kAccuracyDrop, "accuracy lost without each head, in points", 100, 1,
     "no such entry"},
    {results::AblationMetric::kNllDrop, "loss added without each head, in nats", 1, 3,
     "no such entry, or an ablation of version 1, which has no losses"},
    {results::AblationMetric::kNormalisedDrop,
     "accuracy lost without each head, in percent of what is above chance", 100, 1,
     "no such entry, or an accuracy that does not stand out from chance"},
};

const MetricWords& WordsOf(results::AblationMetric metric) {
  return *std::find_if(std::begin(kMetrics), std::end(kMetrics),
                       [&](const MetricWords& words) { return words.metric == metric; });
}

AblationMap Draw(const results::MeanAblation& mean, results::AblationMetric metric) {
  const MetricWords& words = WordsOf(metric);
  const std::string seeds = results::SeedsLabel(mean.seeds, mean.cell->jobs.size());
  AblationMap out;
  out.metric = metric;
  out.strongest = -std::numeric_limits<double>::infinity();
  out.map = {
      .title = Concat(mean.cell->Label(), ": ", words.title, " (", results::Describe(mean.variant),
                      seeds.empty() ? "" : ", ", seeds, ")"),
      .layers = mean.layers,
      .heads = mean.heads,
      .values = std::vector<double>(mean.drops.size(), std::numeric_limits<double>::quiet_NaN()),
      .muted = std::vector<bool>(mean.drops.size(), false),
      .factor = words.factor,
      .decimals = words.decimals};
  for (std::size_t at = 0; at < mean.drops.size(); ++at) {
    if (!mean.drops[at]) continue;
    out.map.values[at] = *mean.drops[at];
    out.map.muted[at] = !mean.counts[at];
    out.strongest = std::max(out.strongest, *mean.drops[at]);
  }
  return out;
}

}  // namespace

std::vector<AblationMap> AblationMaps(const results::CellTable& cells,
                                      const std::vector<v1::HeadAblationRow>& rows,
                                      const results::Variants& variants,
                                      results::AblationMetric metric) {
  std::vector<AblationMap> maps;
  for (const results::MeanAblation& mean : results::MeanAblations(cells, rows, variants, metric)) {
    maps.push_back(Draw(mean, metric));
  }
  return maps;
}

std::string AblationMapText(const AblationMap& map, const render::Style& style) {
  std::string text = render::HeatMapText(map.map, style);
  const auto& muted = map.map.muted;
  if (std::find(muted.begin(), muted.end(), true) != muted.end()) {
    text += "0: at most 3 standard errors of the paired change, taken for no drop\n";
  }
  const auto missing = [](double value) { return std::isnan(value); };
  if (std::any_of(map.map.values.begin(), map.map.values.end(), missing)) {
    text += Concat("-: ", WordsOf(map.metric).missing, "\n");
  }
  return text;
}

std::string AblationStripText(const AblationMap& map, const render::Style& style) {
  render::Strips strips{
      .title = map.map.title, .factor = map.map.factor, .decimals = map.map.decimals};
  for (int layer = 0; layer < map.map.layers; ++layer) {
    render::Strips::Strip& strip = strips.strips.emplace_back();
    strip.label = Concat("layer ", layer);
    for (int head = 0; head < map.map.heads; ++head) {
      const double value = map.map.values[static_cast<std::size_t>(layer) * map.map.heads + head];
      if (!std::isnan(value)) strip.values.push_back(value);
    }
  }
  return render::StripPlot(strips, style);
}

}  // namespace pelab::client
