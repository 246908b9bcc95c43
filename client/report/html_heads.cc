// The head ablations of a report: the drop of each head over seeds, and the largest drop of each
// layer.
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "client/report/html_data.h"
#include "core/base/json_text.h"
#include "core/results/ablation.h"
#include "core/stats/deposit.h"
#include "core/stats/seeds.h"

namespace pelab::client::report {
namespace {

using render::Json;
Json SeedJson(const results::MeanAblation& mean, const results::SeedDrops& seed) {
  Json drops = Json::array(), significant = Json::array();
  for (int layer = 0; layer < mean.layers; ++layer) {
    Json row = Json::array(), row_significant = Json::array();
    for (int head = 0; head < mean.heads; ++head) {
      const auto& drop = seed.drops[static_cast<std::size_t>(layer) * mean.heads + head];
      row.push_back(drop ? Json(drop->value) : Json(nullptr));
      row_significant.push_back(drop && !drop->may_be_chance() ? 1 : 0);
    }
    drops.push_back(std::move(row));
    significant.push_back(std::move(row_significant));
  }
  const v1::HeadAblationRow& any = *seed.row;
  return {{"job_id", seed.job_id},
          {"seed", seed.seed},
          {"total", any.total()},
          {"intact_correct", any.intact_correct()},
          {"stands_out", any.has_chance() ? Json(stats::StandsOut(any.intact_correct(), any.total(),
                                                                  any.chance()))
                                          : Json(nullptr)},
          {"drops", std::move(drops)},
          {"significant", std::move(significant)}};
}

// The means over seeds, and the number of seeds in which a head's drop is significant.
Json MapJson(std::size_t cell, const results::MeanAblation& mean) {
  Json json = results::ToJson(mean);
  const Json by_index = json["by_index"];
  json.erase("by_index");
  json.erase("job_ids");
  Json seeds = Json::array();
  for (const results::SeedDrops& seed : mean.seeds) seeds.push_back(SeedJson(mean, seed));
  json["cell"] = cell;
  json["parameters"] = ParseJsonOrNull<Json>(mean.variant.parameters_json);
  json["of"] = mean.cell->jobs.size();
  json["mean"] = by_index["drops"];
  json["n"] = by_index["n"];
  json["counts"] = by_index["counts"];
  json["significant"] = by_index["significant"];
  json["seeds"] = std::move(seeds);
  Json leads = Json::array();
  for (const results::LayerLead& lead : mean.leads) leads.push_back(results::LeadText(lead));
  json["lead_texts"] = std::move(leads);
  return json;
}

// Whether the intact accuracy stands out from chance, by analysis. If not, the matrix means
// nothing.
std::map<std::int64_t, bool> StandsOutByAnalysis(const ReportInput& input) {
  std::map<std::int64_t, bool> stands_out;
  for (const v1::HeadAblationRow& row : input.heads) {
    stands_out.emplace(
        row.analysis_id(),
        row.has_chance() && stats::StandsOut(row.intact_correct(), row.total(), row.chance()));
  }
  return stands_out;
}

}  // namespace

Json Heads(const ReportInput& input) {
  Json maps = Json::array();
  for (const results::MeanAblation& mean : results::MeanAblations(
           input.cells, input.heads, input.variants, results::AblationMetric::kAccuracyDrop)) {
    maps.push_back(MapJson(static_cast<std::size_t>(mean.cell - input.cells.cells.data()), mean));
  }
  return maps;
}

Json Layers(const ReportInput& input) {
  const std::map<std::int64_t, bool> stands_out = StandsOutByAnalysis(input);
  // By job, variant and layer. If the accuracy could drop but does not, the largest drop is 0.
  std::map<std::int64_t, std::map<results::Variant, std::map<int, double>>> largest;
  for (const v1::DepositRow& row : input.deposits) {
    const auto variant = input.variants.find(row.analysis_id());
    const auto out = stands_out.find(row.analysis_id());
    if (!row.has_layer() || variant == input.variants.end() || out == stands_out.end()) continue;
    if (!row.has_max_drop() && !out->second) continue;
    largest[row.job_id()][variant->second][row.layer()] = row.has_max_drop() ? row.max_drop() : 0;
  }
  Json series = Json::array();
  for (std::size_t c = 0; c < input.cells.cells.size(); ++c) {
    const results::Cell& cell = input.cells.cells[c];
    std::map<results::Variant, std::map<int, std::vector<double>>> of_cell;
    for (const v1::JobRow& job : cell.jobs) {
      for (const auto& [variant, layers] : largest[job.job_id()]) {
        for (const auto& [layer, drop] : layers) of_cell[variant][layer].push_back(drop);
      }
    }
    for (const auto& [variant, layers] : of_cell) {
      Json points = Json::array();
      for (const auto& [layer, drops] : layers) {
        const double mean = stats::Mean(drops);
        const std::optional<double> half = stats::IntervalHalfWidth(drops);
        points.push_back(
            {{"x", layer},
             {"mean", mean},
             {"low", render::OrNull(half ? std::optional(mean - *half) : std::nullopt)},
             {"high", render::OrNull(half ? std::optional(mean + *half) : std::nullopt)},
             {"n", drops.size()},
             {"of", cell.jobs.size()}});
      }
      series.push_back(
          {{"cell", c}, {"variant", results::Describe(variant)}, {"points", std::move(points)}});
    }
  }
  return series;
}

}  // namespace pelab::client::report
