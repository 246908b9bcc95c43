// The head ablations of a report: what each head is worth, over seeds, and the largest of each layer.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
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
using Rows = std::vector<const v1::HeadAblationRow*>;

// A job's matrices by variant. Of two matrices of one variant the later stays.
using Matrices = std::map<std::int64_t, std::map<results::Variant, Rows>>;

Matrices MatricesOf(const ReportInput& input) {
  Matrices matrices;
  for (const v1::HeadAblationRow& row : input.heads) {
    const auto variant = input.variants.find(row.analysis_id());
    if (variant == input.variants.end()) continue;
    Rows& rows = matrices[row.job_id()][variant->second];
    if (!rows.empty() && rows.front()->analysis_id() != row.analysis_id()) rows.clear();
    rows.push_back(&row);
  }
  return matrices;
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

// One variant of one cell.
struct Map {
  int layers = 0;
  int heads = 0;
  std::vector<std::pair<const v1::JobRow*, const Rows*>> seeds;
};

template <typename Value>
std::vector<std::vector<Value>> Grid(const Map& map, const Value& value) {
  return {static_cast<std::size_t>(map.layers),
          std::vector<Value>(static_cast<std::size_t>(map.heads), value)};
}

Json SeedJson(const Map& map, const v1::JobRow& job, const Rows& rows) {
  auto drops = Grid(map, Json(nullptr));
  for (const v1::HeadAblationRow* row : rows) {
    if (row->has_accuracy_drop()) drops[row->layer()][row->head()] = row->accuracy_drop();
  }
  const v1::HeadAblationRow& any = *rows.front();
  const bool known = any.has_chance();
  return {
      {"job_id", job.job_id()},
      {"seed", job.seed()},
      {"total", any.total()},
      {"intact_correct", any.intact_correct()},
      {"stands_out", known ? Json(stats::StandsOut(any.intact_correct(), any.total(), any.chance()))
                           : Json(nullptr)},
      {"drops", drops}};
}

// Means over the seeds, and in how many of them a head's drop exceeds its error.
Json MapJson(std::size_t cell, const results::Cell& its, const results::Variant& variant,
             const Map& map) {
  auto values = Grid(map, std::vector<double>());
  auto counts = Grid(map, 0);
  Json seeds = Json::array();
  for (const auto& [job, rows] : map.seeds) {
    for (const v1::HeadAblationRow* row : *rows) {
      const auto drop = results::DropOf(*row, results::AblationMetric::kAccuracyDrop);
      if (!drop) continue;
      values[row->layer()][row->head()].push_back(drop->value);
      if (drop->counts) ++counts[row->layer()][row->head()];
    }
    seeds.push_back(SeedJson(map, *job, *rows));
  }
  Json mean = Json::array(), n = Json::array();
  for (const auto& layer : values) {
    Json means = Json::array(), ns = Json::array();
    for (const std::vector<double>& head : layer) {
      means.push_back(head.empty() ? Json(nullptr) : Json(stats::Mean(head)));
      ns.push_back(head.size());
    }
    mean.push_back(std::move(means));
    n.push_back(std::move(ns));
  }
  return {{"cell", cell},
          {"variant", results::Describe(variant)},
          {"parameters", ParseJsonOrNull<Json>(variant.parameters_json)},
          {"layers", map.layers},
          {"heads", map.heads},
          {"of", its.jobs.size()},
          {"mean", std::move(mean)},
          {"n", std::move(n)},
          {"counts", counts},
          {"seeds", std::move(seeds)}};
}

// Whether a job's matrix says anything, by analysis.
std::map<std::int64_t, bool> StandingOut(const ReportInput& input) {
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
  const Matrices matrices = MatricesOf(input);
  Json maps = Json::array();
  for (std::size_t c = 0; c < input.cells.cells.size(); ++c) {
    const results::Cell& cell = input.cells.cells[c];
    std::map<results::Variant, Map> by_variant;
    for (const v1::JobRow& job : cell.jobs) {
      const auto found = matrices.find(job.job_id());
      if (found == matrices.end()) continue;
      for (const auto& [variant, rows] : found->second) {
        Map& map = by_variant[variant];
        map.seeds.emplace_back(&job, &rows);
        for (const v1::HeadAblationRow* row : rows) {
          map.layers = std::max(map.layers, row->layer() + 1);
          map.heads = std::max(map.heads, row->head() + 1);
        }
      }
    }
    for (const auto& [variant, map] : by_variant) maps.push_back(MapJson(c, cell, variant, map));
  }
  return maps;
}

Json Layers(const ReportInput& input) {
  const std::map<std::int64_t, bool> stands_out = StandingOut(input);
  // By job, variant and layer. Where nothing drops although it could, the largest drop is 0.
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
        points.push_back({{"x", layer},
                          {"mean", mean},
                          {"low", OrNull(half ? std::optional(mean - *half) : std::nullopt)},
                          {"high", OrNull(half ? std::optional(mean + *half) : std::nullopt)},
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
