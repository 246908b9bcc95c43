#include "client/terminal/ablation_maps.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

struct MetricWords {
  results::AblationMetric metric;
  const char* title;
  double factor;  // from stored values to displayed ones
  int decimals;
  const char* missing;  // the meaning of a missing value
};
constexpr MetricWords kMetrics[] = {
    {results::AblationMetric::kAccuracyDrop, "accuracy lost without each head, in points", 100, 1,
     "no such entry"},
    {results::AblationMetric::kNllDrop, "loss added without each head, in nats", 1, 3,
     "no such entry, or an ablation of version 1, which has no losses"},
    {results::AblationMetric::kNormalizedDrop,
     "accuracy lost without each head, in percent of what is above chance", 100, 1,
     "no such entry, or an accuracy that does not stand out from chance"},
};

const MetricWords& WordsOf(results::AblationMetric metric) {
  return *std::find_if(std::begin(kMetrics), std::end(kMetrics),
                       [&](const MetricWords& words) { return words.metric == metric; });
}

// Builds a map from functions of a row-major entry: `drop` gives its value, `significant` says
// whether it is unlikely to be chance.
template <typename Drop, typename Significant>
render::HeatMap MapOf(const results::MeanAblation& mean, const MetricWords& words, const Drop& drop,
                      const Significant& significant) {
  const std::size_t entries = static_cast<std::size_t>(mean.layers) * mean.heads;
  render::HeatMap map{
      .title = "",
      .layers = mean.layers,
      .heads = mean.heads,
      .values = std::vector<double>(entries, std::numeric_limits<double>::quiet_NaN()),
      .muted = std::vector<bool>(entries, false),
      .factor = words.factor,
      .decimals = words.decimals};
  for (std::size_t at = 0; at < entries; ++at) {
    const std::optional<double> value = drop(at);
    if (!value) continue;
    map.values[at] = *value;
    map.muted[at] = !significant(at);
  }
  return map;
}

render::HeatMap SeedMap(const results::MeanAblation& mean, const MetricWords& words,
                        const results::SeedDrops& seed) {
  render::HeatMap map = MapOf(
      mean, words,
      [&](std::size_t at) {
        return seed.drops[at] ? std::optional(seed.drops[at]->value) : std::nullopt;
      },
      [&](std::size_t at) { return !seed.drops[at]->may_be_chance(); });
  map.title = Concat("seed ", seed.seed, " (job ", seed.job_id, ")");
  return map;
}

AblationMap Draw(const results::MeanAblation& mean, results::AblationMetric metric,
                 results::HeadOrder order) {
  const MetricWords& words = WordsOf(metric);
  const std::string seeds = results::SeedsLabel(mean.seeds.size(), mean.cell->jobs.size());
  const results::MeanDrops& drops = mean.Of(order);
  AblationMap out;
  out.metric = metric;
  out.by_rank = mean.ByRank(order);
  out.strongest = -std::numeric_limits<double>::infinity();
  out.map = MapOf(
      mean, words, [&](std::size_t at) { return drops.drops[at]; },
      [&](std::size_t at) { return drops.significant[at] > 0; });
  out.map.title =
      Concat(mean.cell->Label(), ": ", words.title, " (", results::Describe(mean.variant),
             seeds.empty() ? "" : ", ", seeds, out.by_rank ? " by rank" : "", ")");
  if (out.by_rank) {
    out.map.columns = "rank";
    out.map.first = 1;
  }
  for (const double value : out.map.values) {
    if (!std::isnan(value)) out.strongest = std::max(out.strongest, value);
  }
  if (mean.seeds.size() < 2) return out;
  for (const results::SeedDrops& seed : mean.seeds) {
    out.seeds.push_back(SeedMap(mean, words, seed));
  }
  for (const results::LayerLead& lead : mean.leads) out.leads.push_back(results::LeadText(lead));
  return out;
}

bool HasMissing(const render::HeatMap& map) {
  return std::any_of(map.values.begin(), map.values.end(),
                     [](double value) { return std::isnan(value); });
}

}  // namespace

std::vector<AblationMap> AblationMaps(const results::CellTable& cells,
                                      const std::vector<v1::HeadAblationRow>& rows,
                                      const results::Variants& variants,
                                      results::AblationMetric metric, results::HeadOrder order) {
  std::vector<AblationMap> maps;
  for (const results::MeanAblation& mean : results::MeanAblations(cells, rows, variants, metric)) {
    maps.push_back(Draw(mean, metric, order));
  }
  return maps;
}

std::string AblationMapText(const AblationMap& map, const render::Style& style) {
  std::string text = render::HeatMapText(map.map, style);
  for (const std::string& lead : map.leads) text += lead + "\n";
  double scale = 0;  // one scale for all seeds, so that they can be compared
  for (const render::HeatMap& seed : map.seeds) {
    for (const double value : seed.values) {
      if (!std::isnan(value)) scale = std::max(scale, std::fabs(value));
    }
  }
  for (const render::HeatMap& seed : map.seeds) text += render::HeatMapText(seed, style, scale);
  return text;
}

std::string AblationNotes(const std::vector<AblationMap>& maps, const render::Style& style) {
  if (maps.empty()) return "";
  std::string text =
      "Values are the stored drops; for several seeds, their mean. ?: within 3 standard errors of "
      "the paired change in every seed, so it may be chance.";
  const auto any = [&](const auto& holds) { return std::any_of(maps.begin(), maps.end(), holds); };
  if (any([](const AblationMap& map) { return map.by_rank; })) {
    text +=
        " By rank: 1 is each seed's largest drop in the layer, whichever head it is of: head "
        "numbers are not comparable between seeds. The largest drop can exceed 0 by chance.";
  }
  if (any([](const AblationMap& map) { return HasMissing(map.map); })) {
    text += Concat(" -: ", WordsOf(maps.front().metric).missing, ".");
  }
  return render::Wrap(text, style.width) + "\n";
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
